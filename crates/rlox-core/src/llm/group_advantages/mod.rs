//! P17's seam: how the rewards of each group are normalised.
//!
//! `normalise(rewards, group_size, epsilon, advantages)` writes the advantages, and returns whether all
//! groups' variances were finite.

pub mod baseline;
pub mod optimized;
