//! P1's seam: how the advantages and returns of a step-major rollout are computed. The equations for each
//! environment are those of [`crate::training::gae`].

pub mod baseline;
pub mod optimized;

use super::PipelineWiring;
use crate::RloxError;

/// Advantages and returns, step-major like the input, by the twin that `W` names.
///
/// # Errors
/// Those of [`crate::training::gae::compute_gae`].
pub fn advantages_and_returns<W: PipelineWiring>(
    steps: Steps<'_>,
    gamma: f64,
    gae_lambda: f64,
) -> Result<(Vec<f64>, Vec<f64>), RloxError> {
    if W::P1 {
        optimized::advantages_and_returns::<W>(steps, gamma, gae_lambda)
    } else {
        baseline::advantages_and_returns::<W>(steps, gamma, gae_lambda)
    }
}

/// GAE's inputs of a rollout, step-major: step `t` of environment `e` is element `t * n_envs + e`.
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
