//! P22's baseline: one descent after the other, in which each step waits for the one before it.

use crate::buffer::sum_tree::SumTree;

/// Writes the leaf of each of `prefixes` to `rows`.
pub fn find_all(tree: &SumTree, prefixes: &[f64], rows: &mut Vec<usize>) {
    rows.clear();
    rows.extend(prefixes.iter().map(|&prefix| tree.find(prefix)));
}
