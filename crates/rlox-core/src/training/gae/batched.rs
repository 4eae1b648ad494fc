//! GAE for many environments at once, in either of two memory layouts.

use rayon::prelude::*;

use super::{blocks, check_discounts, step_major};
use crate::error::{RloxError, check_len};
use crate::memory::zeros;
use crate::training::{TrainingWiring, not_finite};
use crate::{Real, pool};

/// The number of elements from which on several threads share the work. With fewer, handing the work to
/// other threads takes longer than it saves.
const PARALLEL_ELEMENTS: usize = 65_536;

/// How a `[n_steps, n_envs]` rollout lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Step `t` of environment `e` is element `t * n_envs + e`: the order in which it is collected.
    StepMajor,
    /// Step `t` of environment `e` is element `e * n_steps + t`: each environment's steps lie side by side.
    EnvMajor,
}

/// Advantages and returns of `last_values.len()` environments, in the inputs' layout.
///
/// The results of each environment are those of [`super::compute_gae`] for its steps: to the bit if
/// env-major, within rounding if step-major.
///
/// # Errors
/// If the lengths differ or are no multiple of the number of environments, `gamma` or `gae_lambda`
/// is outside [0, 1], an input is not finite, or there is no memory.
pub fn compute_gae_batched<W: TrainingWiring, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_values: &[T],
    gamma: f64,
    gae_lambda: f64,
    layout: Layout,
) -> Result<(Vec<T>, Vec<T>), RloxError> {
    let (mut advantages, mut returns) = (zeros(rewards.len())?, zeros(rewards.len())?);
    compute_gae_batched_into::<W, T>(
        rewards,
        values,
        dones,
        last_values,
        gamma,
        gae_lambda,
        layout,
        (&mut advantages, &mut returns),
    )?;
    Ok((advantages, returns))
}

/// [`compute_gae_batched`] that writes the results to slices of the inputs' length. After an error their
/// contents are unspecified.
///
/// # Errors
/// As [`compute_gae_batched`], and if a slice has another length.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub fn compute_gae_batched_into<W: TrainingWiring, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_values: &[T],
    gamma: f64,
    gae_lambda: f64,
    layout: Layout,
    (advantages, returns): (&mut [T], &mut [T]),
) -> Result<(), RloxError> {
    check_discounts(gamma, gae_lambda)?;
    let (total, n_envs) = (rewards.len(), last_values.len());
    for (argument, length) in [
        ("values", values.len()),
        ("dones", dones.len()),
        ("advantages", advantages.len()),
        ("returns", returns.len()),
    ] {
        check_len(argument, length, total)?;
    }
    if n_envs == 0 || !total.is_multiple_of(n_envs) {
        return match (total, n_envs) {
            (0, 0) => Ok(()),
            _ => Err(RloxError::argument(
                "last_values",
                format!("has length {n_envs}, expected one value per environment of {total} steps"),
            )),
        };
    }
    if total == 0 {
        return Ok(());
    }
    let n_steps = total / n_envs;
    let (discount, trace) = (T::from_f64(gamma), T::from_f64(gae_lambda));
    let finite = match layout {
        Layout::EnvMajor => {
            let one = |(env, (advantages, returns)): (usize, (&mut [T], &mut [T]))| {
                let sequence = env * n_steps..(env + 1) * n_steps;
                blocks::advantages_and_returns::<W, T>(
                    &rewards[sequence.clone()],
                    &values[sequence.clone()],
                    &dones[sequence],
                    last_values[env],
                    discount,
                    trace,
                    advantages,
                    returns,
                );
            };
            if total < PARALLEL_ELEMENTS || pool::threads() == 1 {
                let rows = advantages
                    .chunks_mut(n_steps)
                    .zip(returns.chunks_mut(n_steps));
                rows.enumerate().for_each(one);
            } else {
                let rows = advantages
                    .par_chunks_mut(n_steps)
                    .zip(returns.par_chunks_mut(n_steps));
                rows.enumerate().for_each(one);
            }
            advantages.iter().step_by(n_steps).all(|a| a.is_finite())
        }
        Layout::StepMajor => {
            let twin = if W::P15 {
                step_major::optimized::advantages_and_returns
            } else {
                step_major::baseline::advantages_and_returns
            };
            twin(
                rewards,
                values,
                dones,
                last_values,
                discount,
                trace,
                advantages,
                returns,
            );
            advantages[..n_envs].iter().all(|a| a.is_finite())
        }
    };
    if finite {
        return Ok(());
    }
    Err(not_finite(&[
        ("rewards", rewards),
        ("values", values),
        ("dones", dones),
        ("last_values", last_values),
    ]))
}
