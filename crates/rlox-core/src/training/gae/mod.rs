//! Generalised advantage estimation (Schulman et al. 2016, equations 11, 12 and 16).
//!
//! ```text
//! delta_t = r_t + gamma * (1 - done_t) * V(s_{t+1}) - V(s_t)
//! A_t     = delta_t + gamma * lambda * (1 - done_t) * A_{t+1}
//! R_t     = A_t + V(s_t)                                        (the TD(lambda) return)
//! ```
//!
//! `done_t` is 1 where step `t` ended its episode and `V(s_n)` is `last_value`. A truncated episode
//! bootstraps if the caller adds `gamma * V(final_obs)` to its last reward.

pub mod baseline;
mod batched;
pub mod optimized;

pub use batched::{Layout, compute_gae_batched};

use super::{check_unit_interval, not_finite};
use crate::error::{RloxError, check_len};
use crate::{Real, switchboard};

/// Advantages and returns of one sequence of `n` steps.
///
/// # Errors
/// If the lengths differ, `gamma` or `gae_lambda` is outside [0, 1], or an input is not finite.
pub fn compute_gae<T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: f64,
    gae_lambda: f64,
) -> Result<(Vec<T>, Vec<T>), RloxError> {
    check_discounts(gamma, gae_lambda)?;
    check_len("values", values.len(), rewards.len())?;
    check_len("dones", dones.len(), rewards.len())?;

    let mut advantages = vec![T::zero(); rewards.len()];
    switchboard::gae::advantages(
        rewards,
        values,
        dones,
        last_value,
        T::from_f64(gamma),
        T::from_f64(gae_lambda),
        &mut advantages,
    );
    if advantages.first().is_some_and(|first| !first.is_finite()) {
        return Err(not_finite(&[
            ("rewards", rewards),
            ("values", values),
            ("dones", dones),
            ("last_value", &[last_value]),
        ]));
    }
    let returns = add(&advantages, values);
    Ok((advantages, returns))
}

fn check_discounts(gamma: f64, gae_lambda: f64) -> Result<(), RloxError> {
    check_unit_interval("gamma", gamma)?;
    check_unit_interval("gae_lambda", gae_lambda)
}

fn add<T: Real>(advantages: &[T], values: &[T]) -> Vec<T> {
    advantages
        .iter()
        .zip(values)
        .map(|(&a, &v)| a + v)
        .collect()
}

#[cfg(test)]
mod tests;
