//! P16's seam: how the sequences of a batch are turned into sums of their tokens' k3.

pub mod baseline;
pub mod optimized;
