//! A binary tree of partial sums: set a leaf and find a prefix sum in O(log n).

use super::storage::{too_large, zeroed};
use crate::RloxError;

/// Non-negative leaves under nodes that hold the sum of their two children; node 1 is the root, the
/// leaves follow the inner nodes.
#[derive(Debug)]
pub struct SumTree {
    leaves: usize,
    nodes: Vec<f64>,
}

impl SumTree {
    /// `capacity` leaves of zero.
    ///
    /// # Errors
    /// If the memory is not there.
    pub fn new(capacity: usize) -> Result<Self, RloxError> {
        let leaves = capacity.checked_next_power_of_two().unwrap_or(usize::MAX);
        Ok(Self {
            leaves,
            nodes: zeroed(leaves, 2).map_err(|_| too_large::<f64>(capacity, 2))?,
        })
    }

    /// The sum of all leaves.
    pub fn total(&self) -> f64 {
        self.nodes[1]
    }

    /// One leaf.
    pub fn get(&self, index: usize) -> f64 {
        self.nodes[self.leaves + index]
    }

    /// The first `len` leaves.
    pub fn first(&self, len: usize) -> &[f64] {
        &self.nodes[self.leaves..self.leaves + len]
    }

    /// The levels below the root, the widest last: the children of a level's node `i` are `2 * i` and
    /// `2 * i + 1` of the next.
    pub(super) fn levels(&self) -> impl Iterator<Item = &[f64]> {
        (1..=self.leaves.ilog2()).map(|depth| &self.nodes[1 << depth..2 << depth])
    }

    /// Changes one leaf. Sums are made anew from below, so no error builds up over many changes.
    pub fn set(&mut self, index: usize, value: f64) {
        let mut node = self.leaves + index;
        self.nodes[node] = value;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }

    /// The leaf in whose interval of the running sum `prefix` falls, for `prefix` in [0, total).
    ///
    /// Never a leaf of zero while the total is positive, also where rounding puts `prefix` beyond
    /// the last interval.
    pub fn find(&self, mut prefix: f64) -> usize {
        let mut node = 1;
        while node < self.leaves {
            let (left, right) = (2 * node, 2 * node + 1);
            if prefix < self.nodes[left] || self.nodes[right] == 0.0 {
                node = left;
            } else {
                prefix -= self.nodes[left];
                node = right;
            }
        }
        node - self.leaves
    }
}
