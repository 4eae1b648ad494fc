//! P18's seam: how V-trace is computed for one sequence, step by step or a block of steps at a time.

pub mod baseline;
pub mod optimized;
