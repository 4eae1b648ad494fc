//! P14's seam: how one sequence passes through GAE, step by step or a block of steps at a time.

pub mod baseline;
pub mod optimized;
