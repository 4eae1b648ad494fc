//! P5's seam: how the smallest positive priority is known.

use std::fmt::Debug;

use super::storage::{too_large, zeroed};
use super::sum_tree::SumTree;
use crate::RloxError;

/// How the smallest positive priority is known. The one thing that varies between variants of
/// [`super::priority::PriorityBuffer`].
pub trait MinPriority: Debug + Send + Sync + Sized {
    /// For `capacity` leaves, all of them zero.
    ///
    /// # Errors
    /// If the memory is not there.
    fn new(capacity: usize) -> Result<Self, RloxError>;
    /// Leaf `index` of the tree was set to `value`.
    fn set(&mut self, index: usize, value: f64);
    /// The smallest positive one of the first `len` leaves; there is one.
    fn min(&self, tree: &SumTree, len: usize) -> f64;
}

/// Looks at every priority each time it is asked.
#[derive(Debug)]
pub struct Scan;

impl MinPriority for Scan {
    fn new(_capacity: usize) -> Result<Self, RloxError> {
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

/// A tree of minima beside the tree of sums: node 1 is the root, the leaves follow the inner nodes.
///
/// A leaf of zero stands as infinity, since what is never drawn has no part in the minimum.
#[derive(Debug)]
pub struct MinTree {
    leaves: usize,
    nodes: Vec<f64>,
}

impl MinPriority for MinTree {
    fn new(capacity: usize) -> Result<Self, RloxError> {
        let leaves = capacity.checked_next_power_of_two().unwrap_or(usize::MAX);
        let mut nodes = zeroed(leaves, 2).map_err(|_| too_large::<f64>(capacity, 2))?;
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
                break; // nothing changes further up
            }
            self.nodes[node] = min;
        }
    }

    fn min(&self, _tree: &SumTree, _len: usize) -> f64 {
        self.nodes[1]
    }
}
