//! Token-level KL (Schulman's k3 estimator) and GRPO's group advantages (Shao et al. 2024).
//!
//! ```text
//! k3  = exp(d) - d - 1,   d = log p_ref - log p_policy        summed over a sequence's tokens
//! A_i = (r_i - mean(group)) / (std(group) + epsilon)          population standard deviation
//! ```
//!
//! Sums run in f64 whatever the inputs are: `exp(d) - d - 1` cancels where the policies are close,
//! and in f32 little would be left of it.

use std::marker::PhantomData;

use rayon::prelude::*;

use crate::Real;
use crate::error::{RloxError, check_len};

/// When the work is spread over every core. The one thing that varies between variants of [`Ops`].
pub trait Schedule {
    /// Whether a token KL over `rows` sequences of `elements` tokens in all runs in parallel.
    fn token_kl(rows: usize, elements: usize) -> bool;
    /// Whether advantages of `groups` groups with `elements` rewards in all are made in parallel.
    fn group_advantages(groups: usize, elements: usize) -> bool;
}

/// Parallel from 16 sequences on, however short they are; groups always in turn.
#[derive(Debug)]
pub struct ByRows;

impl Schedule for ByRows {
    fn token_kl(rows: usize, _elements: usize) -> bool {
        rows >= 16
    }

    fn group_advantages(_groups: usize, _elements: usize) -> bool {
        false
    }
}

/// Parallel from 4,096 elements on, where there is more than one row or group to share.
#[derive(Debug)]
pub struct ByElements;

/// Elements that pay for handing work to other threads.
const PARALLEL_ELEMENTS: usize = 4_096;

impl Schedule for ByElements {
    fn token_kl(rows: usize, elements: usize) -> bool {
        rows > 1 && elements >= PARALLEL_ELEMENTS
    }

    fn group_advantages(groups: usize, elements: usize) -> bool {
        groups > 1 && elements >= PARALLEL_ELEMENTS
    }
}

/// The operations, generic over when they run in parallel.
#[derive(Debug)]
pub struct Ops<S>(PhantomData<S>);

impl<S: Schedule> Ops<S> {
    /// Sum over each sequence's tokens of the k3 estimate of KL(policy || ref); `[rows, n_tokens]`
    /// in row-major order in, `[rows]` out. Tokens where `mask` is false count nothing, whatever
    /// their log-probabilities are.
    ///
    /// # Errors
    /// If the lengths differ, or a sum is NaN: a NaN log-probability, or minus infinity for a token
    /// that the policy did sample.
    pub fn compute_token_kl<T: Real>(
        log_probs_policy: &[T],
        log_probs_ref: &[T],
        mask: Option<&[bool]>,
        rows: usize,
    ) -> Result<Vec<T>, RloxError> {
        let elements = log_probs_policy.len();
        check_len("log_probs_ref", log_probs_ref.len(), elements)?;
        if let Some(mask) = mask {
            check_len("mask", mask.len(), elements)?;
        }
        if rows == 0 || !elements.is_multiple_of(rows) {
            return match (rows, elements) {
                (0, 0) => Ok(Vec::new()),
                _ => Err(RloxError::argument(
                    "log_probs_policy",
                    format!("has {elements} elements, which do not make {rows} equal rows"),
                )),
            };
        }
        let n_tokens = elements / rows;
        let row_sum = |row: usize| {
            let row = row * n_tokens..(row + 1) * n_tokens;
            let (policy, reference) = (&log_probs_policy[row.clone()], &log_probs_ref[row.clone()]);
            T::from_f64(match mask {
                None => k3_sum(policy.iter().zip(reference)),
                Some(mask) => k3_sum(
                    policy
                        .iter()
                        .zip(reference)
                        .zip(&mask[row])
                        .filter_map(|(pair, &counts)| counts.then_some(pair)),
                ),
            })
        };
        let sums: Vec<T> = if S::token_kl(rows, elements) {
            (0..rows).into_par_iter().map(row_sum).collect()
        } else {
            (0..rows).map(row_sum).collect()
        };
        match sums.iter().position(|sum| sum.is_nan()) {
            None => Ok(sums),
            Some(row) => Err(RloxError::argument(
                "log_probs_policy",
                format!(
                    "or log_probs_ref makes the KL of sequence {row} NaN; expected \
                     log-probabilities, finite in log_probs_policy (padding can be masked out)"
                ),
            )),
        }
    }

    /// Each reward's advantage over its group; groups are consecutive runs of `group_size`.
    ///
    /// # Errors
    /// If `group_size` does not divide the number of rewards, `epsilon` is not positive, or a reward
    /// is not finite.
    pub fn compute_group_advantages<T: Real>(
        rewards: &[T],
        group_size: usize,
        epsilon: f64,
    ) -> Result<Vec<T>, RloxError> {
        if group_size == 0 || !rewards.len().is_multiple_of(group_size) {
            return Err(RloxError::argument(
                "group_size",
                format!(
                    "is {group_size}, expected a positive divisor of the {} rewards",
                    rewards.len()
                ),
            ));
        }
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(RloxError::argument(
                "epsilon",
                format!("is {epsilon}, expected a positive number (a constant group has std 0)"),
            ));
        }
        let mut advantages = vec![T::zero(); rewards.len()];
        let normalise = |(rewards, advantages): (&[T], &mut [T])| {
            normalise_group(rewards, epsilon, advantages);
        };
        if S::group_advantages(rewards.len() / group_size, rewards.len()) {
            rewards
                .par_chunks(group_size)
                .zip(advantages.par_chunks_mut(group_size))
                .for_each(normalise);
        } else {
            rewards
                .chunks(group_size)
                .zip(advantages.chunks_mut(group_size))
                .for_each(normalise);
        }
        // One reward that is not finite makes its whole group NaN.
        if advantages.iter().step_by(group_size).any(|a| a.is_nan()) {
            let index = rewards.iter().position(|reward| !reward.is_finite());
            return Err(RloxError::argument(
                "rewards",
                match index {
                    Some(index) => {
                        format!(
                            "is {} at index {index}, expected finite numbers",
                            rewards[index]
                        )
                    }
                    None => "is so large that its variance overflows; scale it down".into(),
                },
            ));
        }
        Ok(advantages)
    }
}

fn k3_sum<'a, T: Real>(pairs: impl Iterator<Item = (&'a T, &'a T)>) -> f64 {
    pairs
        .map(|(&policy, &reference)| {
            let (policy, reference): (f64, f64) = (policy.into(), reference.into());
            let d = reference - policy;
            d.exp() - d - 1.0
        })
        .sum()
}

fn normalise_group<T: Real>(rewards: &[T], epsilon: f64, advantages: &mut [T]) {
    let n = rewards.len() as f64;
    let mean = rewards.iter().map(|&r| r.into()).sum::<f64>() / n;
    let centred = |reward: T| reward.into() - mean;
    let variance = rewards.iter().map(|&r| centred(r).powi(2)).sum::<f64>() / n;
    // An infinite variance would pass for advantages of zero.
    let scale = if variance.is_finite() {
        variance.sqrt() + epsilon
    } else {
        f64::NAN
    };
    for (advantage, &reward) in advantages.iter_mut().zip(rewards) {
        *advantage = T::from_f64(centred(reward) / scale);
    }
}

#[cfg(test)]
mod tests;
