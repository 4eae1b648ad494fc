//! P22's seam: the leaves of a sum tree in whose intervals given prefix sums fall.
//!
//! `find_all(tree, prefixes, rows)` makes `rows` the leaf of each prefix, as [`SumTree::find`] has it.
//!
//! [`SumTree::find`]: super::sum_tree::SumTree::find

pub mod baseline;
pub mod optimized;
