//! The rollout transposed once, GAE over all environments in one batch, the results transposed back.

use super::Steps;
use crate::error::RloxError;
use crate::training::gae::{Layout, compute_gae_batched};

/// Advantages and returns, step-major like the input.
pub fn advantages_and_returns(
    steps: Steps<'_>,
    gamma: f64,
    gae_lambda: f64,
) -> Result<(Vec<f64>, Vec<f64>), RloxError> {
    let n_envs = steps.last_values.len();
    let n_steps = steps.rewards.len() / n_envs;
    let (advantages, returns) = compute_gae_batched(
        &transposed(steps.rewards, n_envs),
        &transposed(steps.values, n_envs),
        &transposed(steps.dones, n_envs),
        steps.last_values,
        gamma,
        gae_lambda,
        Layout::EnvMajor,
    )?;
    Ok((
        transposed(&advantages, n_steps),
        transposed(&returns, n_steps),
    ))
}

/// `[rows, width]` as `[width, rows]`.
fn transposed(of: &[f64], width: usize) -> Vec<f64> {
    let rows = of.len() / width;
    let mut to = vec![0.0; of.len()];
    for (row, values) in of.chunks_exact(width).enumerate() {
        for (column, &value) in values.iter().enumerate() {
            to[column * rows + row] = value;
        }
    }
    to
}
