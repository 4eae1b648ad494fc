//! P17's seam: how the rewards of a batch are normalised, each group by itself.

pub mod baseline;
pub mod optimized;
