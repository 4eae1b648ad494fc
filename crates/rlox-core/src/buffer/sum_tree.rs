//! A binary tree of sums. Setting a leaf and finding the leaf of a prefix sum take O(log n).

use super::BufferWiring;
use super::pages::{too_large, zeroed};
use crate::RloxError;

/// A binary tree whose leaves are numbers of at least 0, and whose other nodes are the sum of their two
/// children.
#[derive(Debug)]
pub struct SumTree {
    /// The number of leaves, a power of two.
    leaves: usize,
    /// Node 1 is the root, the children of node `i` are `2 * i` and `2 * i + 1`, and the leaves come last.
    nodes: Vec<f64>,
}

impl SumTree {
    /// A tree with at least `capacity` leaves, all zero.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new<W: BufferWiring>(capacity: usize) -> Result<Self, RloxError> {
        let leaves = capacity.checked_next_power_of_two().unwrap_or(usize::MAX);
        Ok(Self {
            leaves,
            nodes: zeroed::<W, _>(leaves, 2).map_err(|_| too_large::<f64>(capacity, 2))?,
        })
    }

    /// The sum of all leaves.
    pub fn total(&self) -> f64 {
        self.nodes[1]
    }

    /// Leaf `index`.
    pub fn get(&self, index: usize) -> f64 {
        self.nodes[self.leaves + index]
    }

    /// The first `len` leaves.
    pub fn first(&self, len: usize) -> &[f64] {
        &self.nodes[self.leaves..self.leaves + len]
    }

    /// The levels of the tree below the root, each as a slice, from the top down. The children of node `i`
    /// of a level are the nodes `2 * i` and `2 * i + 1` of the next one.
    pub(super) fn levels(&self) -> impl Iterator<Item = &[f64]> {
        (1..=self.leaves.ilog2()).map(|depth| &self.nodes[1 << depth..2 << depth])
    }

    /// Sets leaf `index` to `value`. The sums above are added up again from their children, and not changed
    /// by a difference, so that rounding errors do not grow with the number of changes.
    pub fn set(&mut self, index: usize, value: f64) {
        let mut node = self.leaves + index;
        self.nodes[node] = value;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }

    /// The leaf that `prefix`, in [0, total), falls on: the first one up to which the leaves sum to more
    /// than `prefix`.
    ///
    /// A leaf of zero is never found if the total is positive, not even if rounding makes `prefix` too
    /// large for every leaf: subtrees of zero are avoided.
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
