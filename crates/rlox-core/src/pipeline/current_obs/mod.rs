//! P13's seam: the observations `[n_envs * obs_dim]` that the policy is about to act on, made from
//! those of the step before.

pub mod baseline;
pub mod optimized;
