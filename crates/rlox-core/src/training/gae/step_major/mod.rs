//! P15's seam: how a step-major batch, element `(t, e)` at `t * n_envs + e`, passes through GAE.

pub mod baseline;
pub mod optimized;
