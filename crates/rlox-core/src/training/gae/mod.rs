//! Generalised advantage estimation (Schulman et al. 2016, equations 11, 12 and 16).
//!
//! ```text
//! delta_t = r_t + gamma * (1 - done_t) * V(s_{t+1}) - V(s_t)
//! A_t     = delta_t + gamma * lambda * (1 - done_t) * A_{t+1}
//! R_t     = A_t + V(s_t)                                        (the TD(lambda) return)
//! ```
//!
//! `done_t` is 1 if step `t` ended its episode, and `V(s_n)` is `last_value`. To bootstrap a truncated
//! episode, the caller adds `gamma * V(final_obs)` to its last reward.

pub mod baseline;
mod batched;
pub mod blocks;
pub mod optimized;
pub mod step_major;

pub use batched::{Layout, compute_gae_batched, compute_gae_batched_into};

use super::{TrainingWiring, check_unit_interval, not_finite};
use crate::Real;
use crate::error::{RloxError, check_len};
use crate::memory::zeros;

/// Advantages and returns of one sequence of `n` steps.
///
/// # Errors
/// If the lengths differ, `gamma` or `gae_lambda` is outside [0, 1], an input is not finite, or there is
/// no memory.
pub fn compute_gae<W: TrainingWiring, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: f64,
    gae_lambda: f64,
) -> Result<(Vec<T>, Vec<T>), RloxError> {
    let (mut advantages, mut returns) = (zeros(rewards.len())?, zeros(rewards.len())?);
    compute_gae_into::<W, T>(
        rewards,
        values,
        dones,
        last_value,
        gamma,
        gae_lambda,
        (&mut advantages, &mut returns),
    )?;
    Ok((advantages, returns))
}

/// [`compute_gae`] that writes the results to slices of the inputs' length. After an error their contents
/// are unspecified.
///
/// # Errors
/// As [`compute_gae`], and if a slice has another length.
pub fn compute_gae_into<W: TrainingWiring, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: f64,
    gae_lambda: f64,
    (advantages, returns): (&mut [T], &mut [T]),
) -> Result<(), RloxError> {
    check_discounts(gamma, gae_lambda)?;
    for (argument, length) in [
        ("values", values.len()),
        ("dones", dones.len()),
        ("advantages", advantages.len()),
        ("returns", returns.len()),
    ] {
        check_len(argument, length, rewards.len())?;
    }
    blocks::advantages_and_returns::<W, T>(
        rewards,
        values,
        dones,
        last_value,
        T::from_f64(gamma),
        T::from_f64(gae_lambda),
        advantages,
        returns,
    );
    if advantages.first().is_none_or(|first| first.is_finite()) {
        return Ok(());
    }
    Err(not_finite(&[
        ("rewards", rewards),
        ("values", values),
        ("dones", dones),
        ("last_value", &[last_value]),
    ]))
}

fn check_discounts(gamma: f64, gae_lambda: f64) -> Result<(), RloxError> {
    check_unit_interval("gamma", gamma)?;
    check_unit_interval("gae_lambda", gae_lambda)
}

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
