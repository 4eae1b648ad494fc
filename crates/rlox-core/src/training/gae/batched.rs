//! Advantages of many environments at once, in either memory layout.

use rayon::prelude::*;

use super::{add, check_discounts};
use crate::error::{RloxError, check_len};
use crate::training::not_finite;
use crate::{Real, switchboard};

/// Below this many elements a fork-join costs more than it saves.
const PARALLEL_ELEMENTS: usize = 16_384;

/// How a `[n_steps, n_envs]` rollout lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Element `(t, e)` at `t * n_envs + e`: as it is collected.
    StepMajor,
    /// Element `(t, e)` at `e * n_steps + t`: each environment's sequence in one piece.
    EnvMajor,
}

/// Advantages and returns of `last_values.len()` environments, laid out as the inputs are.
///
/// Equal to the bit to [`super::compute_gae`] on each environment's sequence, in both layouts.
///
/// # Errors
/// If the lengths differ or are no multiple of the number of environments, `gamma` or `gae_lambda`
/// is outside [0, 1], or an input is not finite.
pub fn compute_gae_batched<T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_values: &[T],
    gamma: f64,
    gae_lambda: f64,
    layout: Layout,
) -> Result<(Vec<T>, Vec<T>), RloxError> {
    check_discounts(gamma, gae_lambda)?;
    let (total, n_envs) = (rewards.len(), last_values.len());
    check_len("values", values.len(), total)?;
    check_len("dones", dones.len(), total)?;
    if n_envs == 0 || !total.is_multiple_of(n_envs) {
        return match (total, n_envs) {
            (0, 0) => Ok((Vec::new(), Vec::new())),
            _ => Err(RloxError::argument(
                "last_values",
                format!("has length {n_envs}, expected one value per environment of {total} steps"),
            )),
        };
    }
    let n_steps = total / n_envs;

    let mut advantages = vec![T::zero(); total];
    if n_steps > 0 {
        let rollout = Rollout {
            rewards,
            values,
            dones,
            last_values,
            gamma: T::from_f64(gamma),
            gae_lambda: T::from_f64(gae_lambda),
        };
        let finite = match layout {
            Layout::EnvMajor => {
                rollout.env_major(n_steps, &mut advantages);
                advantages.iter().step_by(n_steps).all(|a| a.is_finite())
            }
            Layout::StepMajor => {
                rollout.step_major(n_envs, &mut advantages);
                advantages[..n_envs].iter().all(|a| a.is_finite())
            }
        };
        if !finite {
            return Err(not_finite(&[
                ("rewards", rewards),
                ("values", values),
                ("dones", dones),
                ("last_values", last_values),
            ]));
        }
    }
    let returns = add(&advantages, values);
    Ok((advantages, returns))
}

struct Rollout<'a, T> {
    rewards: &'a [T],
    values: &'a [T],
    dones: &'a [T],
    last_values: &'a [T],
    gamma: T,
    gae_lambda: T,
}

impl<T: Real> Rollout<'_, T> {
    fn env_major(&self, n_steps: usize, advantages: &mut [T]) {
        let one = |(env, advantages): (usize, &mut [T])| {
            let sequence = env * n_steps..(env + 1) * n_steps;
            switchboard::gae::advantages(
                &self.rewards[sequence.clone()],
                &self.values[sequence.clone()],
                &self.dones[sequence],
                self.last_values[env],
                self.gamma,
                self.gae_lambda,
                advantages,
            );
        };
        if advantages.len() < PARALLEL_ELEMENTS {
            advantages.chunks_mut(n_steps).enumerate().for_each(one);
        } else {
            advantages.par_chunks_mut(n_steps).enumerate().for_each(one);
        }
    }

    /// Row by row from the last step, every environment of a row at once: no transposing, and the
    /// compiler can use SIMD across environments.
    fn step_major(&self, n_envs: usize, advantages: &mut [T]) {
        let mut next_values = self.last_values;
        let mut next_advantages: &[T] = &vec![T::zero(); n_envs];
        let mut rest = advantages;
        while let Some(start) = rest.len().checked_sub(n_envs) {
            let (head, row) = rest.split_at_mut(start);
            let steps = start..start + n_envs;
            let values = &self.values[steps.clone()];
            let inputs = self.rewards[steps.clone()]
                .iter()
                .zip(values)
                .zip(&self.dones[steps]);
            let next = next_values.iter().zip(next_advantages);
            for ((advantage, ((&reward, &value), &done)), (&next_value, &next_advantage)) in
                row.iter_mut().zip(inputs).zip(next)
            {
                let not_done = T::one() - done;
                let delta = reward + self.gamma * next_value * not_done - value;
                *advantage = delta + self.gamma * self.gae_lambda * not_done * next_advantage;
            }
            (next_values, next_advantages, rest) = (values, row, head);
        }
    }
}
