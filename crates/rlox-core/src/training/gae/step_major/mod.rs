//! P15's seam: how GAE is computed for a step-major batch, in which step `t` of environment `e` is
//! element `t * n_envs + e`.

pub mod baseline;
pub mod optimized;
