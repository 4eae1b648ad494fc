//! P22's seam: how the leaves of a sum tree are found for many prefix sums. A descent is the search for one
//! leaf, from the root down.

pub mod baseline;
pub mod optimized;

use super::BufferWiring;
use super::sum_tree::SumTree;

/// Writes the leaf that [`SumTree::find`] finds for each of `prefixes` to `rows`, by the twin that `W`
/// names.
pub(super) fn find_all<W: BufferWiring>(tree: &SumTree, prefixes: &[f64], rows: &mut Vec<usize>) {
    if W::P22 {
        optimized::find_all(tree, prefixes, rows);
    } else {
        baseline::find_all(tree, prefixes, rows);
    }
}
