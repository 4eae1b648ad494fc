//! P1's baseline: one environment after the other. The steps of each are copied side by side, GAE is
//! computed for them, and the results are copied back.

use super::Steps;
use crate::error::RloxError;
use crate::training::TrainingWiring;
use crate::training::gae::compute_gae;

/// Advantages and returns, step-major like the input.
pub fn advantages_and_returns<W: TrainingWiring>(
    steps: Steps<'_>,
    gamma: f64,
    gae_lambda: f64,
) -> Result<(Vec<f64>, Vec<f64>), RloxError> {
    let n_envs = steps.last_values.len();
    let n_steps = steps.rewards.len() / n_envs;
    let mut advantages = vec![0.0; n_steps * n_envs];
    let mut returns = vec![0.0; n_steps * n_envs];
    for (env, &last_value) in steps.last_values.iter().enumerate() {
        let column =
            |of: &[f64]| -> Vec<f64> { (0..n_steps).map(|t| of[t * n_envs + env]).collect() };
        let (env_advantages, env_returns) = compute_gae::<W, _>(
            &column(steps.rewards),
            &column(steps.values),
            &column(steps.dones),
            last_value,
            gamma,
            gae_lambda,
        )?;
        for t in 0..n_steps {
            advantages[t * n_envs + env] = env_advantages[t];
            returns[t * n_envs + env] = env_returns[t];
        }
    }
    Ok((advantages, returns))
}
