//! P22's seam: the leaves of a sum tree in whose intervals given prefix sums fall.
//!
//! `find_all(tree, prefixes, rows)` makes `rows` the leaf of each prefix, as [`SumTree::find`] has it.
//!
//! [`SumTree::find`]: super::sum_tree::SumTree::find

pub mod baseline;
pub mod optimized;

use super::BufferWiring;
use super::sum_tree::SumTree;

/// Makes `rows` the leaves of `prefixes`, by the twin that `W` names.
pub(super) fn find_all<W: BufferWiring>(tree: &SumTree, prefixes: &[f64], rows: &mut Vec<usize>) {
    if W::P22 {
        optimized::find_all(tree, prefixes, rows);
    } else {
        baseline::find_all(tree, prefixes, rows);
    }
}
