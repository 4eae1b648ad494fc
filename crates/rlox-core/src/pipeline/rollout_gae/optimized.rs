//! P1's optimised form: the whole rollout is transposed, GAE is computed for all environments in one
//! call, and the results are transposed back.

use super::Steps;
use crate::error::RloxError;
use crate::memory::zeros;
use crate::training::TrainingWiring;
use crate::training::gae::{Layout, compute_gae_batched};

/// Advantages and returns, step-major like the input.
pub fn advantages_and_returns<W: TrainingWiring>(
    steps: Steps<'_>,
    gamma: f64,
    gae_lambda: f64,
) -> Result<(Vec<f64>, Vec<f64>), RloxError> {
    let n_envs = steps.last_values.len();
    let n_steps = steps.rewards.len() / n_envs;
    let (advantages, returns) = compute_gae_batched::<W, _>(
        &transposed(steps.rewards, n_envs)?,
        &transposed(steps.values, n_envs)?,
        &transposed(steps.dones, n_envs)?,
        steps.last_values,
        gamma,
        gae_lambda,
        Layout::EnvMajor,
    )?;
    Ok((
        transposed(&advantages, n_steps)?,
        transposed(&returns, n_steps)?,
    ))
}

/// Rows and columns of a tile: the f64 of a cache line, so that a tile uses all of every line it reads.
const TILE: usize = 8;

/// The matrix `of`, `[rows, width]`, transposed to `[width, rows]`. It is copied tile by tile.
fn transposed(of: &[f64], width: usize) -> Result<Vec<f64>, RloxError> {
    let rows = of.len() / width;
    let mut to = zeros(of.len())?;
    for first_row in (0..rows).step_by(TILE) {
        for first_column in (0..width).step_by(TILE) {
            for column in first_column..width.min(first_column + TILE) {
                for row in first_row..rows.min(first_row + TILE) {
                    to[column * rows + row] = of[row * width + column];
                }
            }
        }
    }
    Ok(to)
}
