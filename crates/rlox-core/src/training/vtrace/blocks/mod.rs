//! P18's seam: how one sequence passes through V-trace, step by step or in blocks.

pub mod baseline;
pub mod optimized;
