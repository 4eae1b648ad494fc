//! P1's seam: advantages and returns of a step-major rollout, `x[t * n_envs + e]`.
//!
//! Environment by environment the equations are those of [`crate::training::gae`].

pub mod baseline;
pub mod optimized;

/// A rollout as GAE sees it, step-major `[n_steps * n_envs]`.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    /// Rewards, with the bootstrap of truncated episodes added.
    pub rewards: &'a [f64],
    /// Values of the observations acted on.
    pub values: &'a [f64],
    /// 1 where the step ended an episode, else 0.
    pub dones: &'a [f64],
    /// Values of the observations after the last step `[n_envs]`.
    pub last_values: &'a [f64],
}
