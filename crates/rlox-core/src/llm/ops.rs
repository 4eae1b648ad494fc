//! The token-level KL divergence by the k3 estimator (Schulman 2020, "Approximating KL divergence") and
//! GRPO's group advantages (Shao et al. 2024, section 4.1.2).
//!
//! ```text
//! k3  = exp(d) - d - 1,   d = log p_ref - log p_policy        summed over a sequence's tokens
//! A_i = (r_i - mean(group)) / (std(group) + epsilon)          population standard deviation
//! ```
//!
//! `exp(d) - d - 1` cancels where the policies are close. So it is computed in float64 (P16's
//! baseline), or as one function that does not cancel (P16's optimised form). The latter sums eight
//! tokens in the inputs' type; all other sums are float64.

use std::marker::PhantomData;

use super::{LlmWiring, group_advantages, token_kl};
use crate::Real;
use crate::error::{RloxError, check_len};
use crate::memory::zeros;

/// P8's seam: when an operation uses every core.
pub trait Schedule {
    /// Whether the KL of `rows` sequences with `elements` tokens in all is computed in parallel.
    fn token_kl(rows: usize, elements: usize) -> bool;
    /// Whether the advantages of `groups` groups with `elements` rewards in all are computed in
    /// parallel.
    fn group_advantages(groups: usize, elements: usize) -> bool;
}

/// The baseline: sequences in parallel from 16 on, however short they are, and groups never.
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

/// The optimised form: in parallel from 4,096 elements on, if there is more than one sequence or group.
#[derive(Debug)]
pub struct ByElements;

/// Elements from which on handing work to other threads costs less than it saves.
const PARALLEL_ELEMENTS: usize = 4_096;

impl Schedule for ByElements {
    fn token_kl(rows: usize, elements: usize) -> bool {
        rows > 1 && elements >= PARALLEL_ELEMENTS
    }

    fn group_advantages(groups: usize, elements: usize) -> bool {
        groups > 1 && elements >= PARALLEL_ELEMENTS
    }
}

/// The operations, in the forms that the wiring `W` names.
#[derive(Debug)]
pub struct Ops<W>(PhantomData<W>);

impl<W: LlmWiring> Ops<W> {
    /// The k3 estimate of KL(policy || ref) of each of `rows` sequences, in nats: the sum over its
    /// tokens.
    ///
    /// The log-probabilities and `mask` are `[rows, n_tokens]` in row-major order, the result is
    /// `[rows]`. Tokens where `mask` is 0 do not count, whatever their log-probabilities are.
    ///
    /// # Errors
    /// If the lengths differ, a sum is NaN, or there is no memory. A sum is NaN if a log-probability is
    /// NaN, or minus infinity in `log_probs_policy`, which cannot be for a token that the policy
    /// sampled.
    pub fn compute_token_kl<T: Real>(
        log_probs_policy: &[T],
        log_probs_ref: &[T],
        mask: Option<&[u8]>,
        rows: usize,
    ) -> Result<Vec<T>, RloxError> {
        let mut sums = zeros(rows)?;
        Self::compute_token_kl_into(log_probs_policy, log_probs_ref, mask, &mut sums)?;
        Ok(sums)
    }

    /// [`Self::compute_token_kl`] with the result written to `sums`, `[rows]`. After an error its
    /// contents are unspecified.
    ///
    /// # Errors
    /// As [`Self::compute_token_kl`].
    pub fn compute_token_kl_into<T: Real>(
        log_probs_policy: &[T],
        log_probs_ref: &[T],
        mask: Option<&[u8]>,
        sums: &mut [T],
    ) -> Result<(), RloxError> {
        let (rows, elements) = (sums.len(), log_probs_policy.len());
        check_len("log_probs_ref", log_probs_ref.len(), elements)?;
        if let Some(mask) = mask {
            check_len("mask", mask.len(), elements)?;
        }
        if rows == 0 || !elements.is_multiple_of(rows) {
            return match (rows, elements) {
                (0, 0) => Ok(()),
                _ => Err(RloxError::argument(
                    "log_probs_policy",
                    format!("has {elements} elements, which do not make {rows} equal rows"),
                )),
            };
        }
        let k3_sums = if W::P16 {
            token_kl::optimized::k3_sums::<W::Schedule, T>
        } else {
            token_kl::baseline::k3_sums::<W::Schedule, T>
        };
        k3_sums(log_probs_policy, log_probs_ref, mask, sums);
        match sums.iter().position(|sum| sum.is_nan()) {
            None => Ok(()),
            Some(row) => Err(RloxError::argument(
                "log_probs_policy",
                format!(
                    "or log_probs_ref makes the KL of sequence {row} NaN; expected \
                     log-probabilities, finite in log_probs_policy (padding can be masked out)"
                ),
            )),
        }
    }

    /// Each reward's advantage over its group, `[n]` for `n` rewards. A group is `group_size`
    /// consecutive rewards.
    ///
    /// # Errors
    /// If `group_size` does not divide the number of rewards, `epsilon` is not positive and normal, a
    /// reward is not finite or a group's variance overflows, or there is no memory.
    pub fn compute_group_advantages<T: Real>(
        rewards: &[T],
        group_size: usize,
        epsilon: f64,
    ) -> Result<Vec<T>, RloxError> {
        let mut advantages = zeros(rewards.len())?;
        Self::compute_group_advantages_into(rewards, group_size, epsilon, &mut advantages)?;
        Ok(advantages)
    }

    /// [`Self::compute_group_advantages`] with the result written to `advantages`, `[n]`. After an
    /// error its contents are unspecified.
    ///
    /// # Errors
    /// As [`Self::compute_group_advantages`], and if `advantages` has another length.
    pub fn compute_group_advantages_into<T: Real>(
        rewards: &[T],
        group_size: usize,
        epsilon: f64,
        advantages: &mut [T],
    ) -> Result<(), RloxError> {
        check_len("advantages", advantages.len(), rewards.len())?;
        if group_size == 0 || !rewards.len().is_multiple_of(group_size) {
            return Err(RloxError::argument(
                "group_size",
                format!(
                    "is {group_size}, expected a positive divisor of the {} rewards",
                    rewards.len()
                ),
            ));
        }
        // A denormal epsilon is refused: its reciprocal can be infinite.
        if !(f64::MIN_POSITIVE..f64::INFINITY).contains(&epsilon) {
            return Err(RloxError::argument(
                "epsilon",
                format!("is {epsilon}, expected a positive number (a constant group has std 0)"),
            ));
        }
        let normalise = if W::P17 {
            group_advantages::optimized::normalise::<W::Schedule, T>
        } else {
            group_advantages::baseline::normalise::<W::Schedule, T>
        };
        if normalise(rewards, group_size, epsilon, advantages) {
            return Ok(());
        }
        let index = rewards.iter().position(|reward| !reward.is_finite());
        Err(RloxError::argument(
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
        ))
    }
}

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("ops/tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
