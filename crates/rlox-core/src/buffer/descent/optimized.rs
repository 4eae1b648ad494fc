//! P22's optimised form: sixteen descents at a time, level by level. Their loads do not wait for each
//! other, and there is no branch for the processor to mispredict. The comparisons and subtractions of
//! each descent are those of the baseline.

use std::hint::select_unpredictable;

use crate::buffer::sum_tree::SumTree;

/// How many descents are done at a time.
const TOGETHER: usize = 16;

/// Writes the leaf of each of `prefixes` to `rows`.
pub fn find_all(tree: &SumTree, prefixes: &[f64], rows: &mut Vec<usize>) {
    rows.clear();
    let (groups, rest) = prefixes.as_chunks::<TOGETHER>();
    for group in groups {
        let (mut nodes, mut rests) = ([0; TOGETHER], *group);
        for level in tree.levels() {
            let last = level.len() - 1;
            for (node, rest) in nodes.iter_mut().zip(&mut rests) {
                let left = level[(2 * *node) & last]; // masked, so that no bound is checked
                let to_right = *rest >= left;
                *rest = select_unpredictable(to_right, *rest - left, *rest);
                *node = 2 * *node + usize::from(to_right);
            }
        }
        // Only rounding can lead a descent to a leaf of zero. Such a prefix is searched again by
        // `find`, which avoids subtrees of zero.
        let found = nodes.iter().zip(group);
        rows.extend(found.map(|(&leaf, &prefix)| match tree.get(leaf) {
            0.0 => tree.find(prefix),
            _ => leaf,
        }));
    }
    rows.extend(rest.iter().map(|&prefix| tree.find(prefix)));
}
