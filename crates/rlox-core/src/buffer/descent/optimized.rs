//! Sixteen side by side, level by level: their loads do not wait for each other, and no branch is
//! guessed. The comparisons and subtractions of a prefix are the same.

use crate::buffer::sum_tree::SumTree;

/// Descents under way at once.
const TOGETHER: usize = 16;

/// Makes `rows` the leaves of `prefixes`.
pub fn find_all(tree: &SumTree, prefixes: &[f64], rows: &mut Vec<usize>) {
    let children = tree.children();
    rows.clear();
    rows.resize(prefixes.len(), 1);
    for (prefixes, nodes) in prefixes.chunks(TOGETHER).zip(rows.chunks_mut(TOGETHER)) {
        let mut rests = [0.0; TOGETHER];
        rests[..prefixes.len()].copy_from_slice(prefixes);
        for _ in 0..tree.depth() {
            for (node, rest) in nodes.iter_mut().zip(&mut rests) {
                let [left, right] = children[*node];
                let to_right = (*rest >= left) & (right != 0.0);
                *rest -= if to_right { left } else { 0.0 };
                *node = 2 * *node + usize::from(to_right);
            }
        }
        for node in nodes {
            *node -= children.len();
        }
    }
}
