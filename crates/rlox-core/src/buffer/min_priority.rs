//! P5's seam: how the smallest positive priority is found.

use std::fmt::Debug;

use super::BufferWiring;
use super::pages::{too_large, zeroed};
use super::sum_tree::SumTree;
use crate::RloxError;

/// Finds the smallest positive leaf of a sum tree, for [`super::priority::PriorityBuffer`].
pub trait MinPriority: Debug + Send + Sync + Sized {
    /// For a tree of `capacity` leaves, which are zero at first.
    ///
    /// # Errors
    /// If there is no memory.
    fn new<W: BufferWiring>(capacity: usize) -> Result<Self, RloxError>;
    /// Is called whenever leaf `index` of the tree is set to `value`.
    fn set(&mut self, index: usize, value: f64);
    /// The smallest positive one of the first `len` leaves of `tree`. At least one of them is positive.
    fn min(&self, tree: &SumTree, len: usize) -> f64;
}

/// P5's baseline: goes through all leaves at every call.
#[derive(Debug)]
pub struct Scan;

impl MinPriority for Scan {
    fn new<W: BufferWiring>(_capacity: usize) -> Result<Self, RloxError> {
        Ok(Self)
    }

    fn set(&mut self, _index: usize, _value: f64) {}

    fn min(&self, tree: &SumTree, len: usize) -> f64 {
        let mut min = f64::INFINITY;
        for &priority in tree.first(len) {
            if priority > 0.0 && priority < min {
                min = priority;
            }
        }
        min
    }
}

/// P5's optimised form: a tree of minima beside the tree of sums, so that the minimum is at the root.
///
/// A leaf of zero is infinity in this tree, so that it does not count: its row is never drawn.
#[derive(Debug)]
pub struct MinTree {
    /// The number of leaves, a power of two.
    leaves: usize,
    /// Node 1 is the root, the children of node `i` are `2 * i` and `2 * i + 1`, and the leaves come last.
    nodes: Vec<f64>,
}

impl MinPriority for MinTree {
    fn new<W: BufferWiring>(capacity: usize) -> Result<Self, RloxError> {
        let leaves = capacity.checked_next_power_of_two().unwrap_or(usize::MAX);
        let mut nodes = zeroed::<W, f64>(leaves, 2).map_err(|_| too_large::<f64>(capacity, 2))?;
        nodes.fill(f64::INFINITY);
        Ok(Self { leaves, nodes })
    }

    fn set(&mut self, index: usize, value: f64) {
        let mut node = self.leaves + index;
        self.nodes[node] = if value > 0.0 { value } else { f64::INFINITY };
        while node > 1 {
            node /= 2;
            let min = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if min == self.nodes[node] {
                break; // the nodes above do not change either
            }
            self.nodes[node] = min;
        }
    }

    fn min(&self, _tree: &SumTree, _len: usize) -> f64 {
        self.nodes[1]
    }
}
