//! P16's optimised form: whole vectors of tokens in the inputs' type. [`Real::exp_rest`] computes
//! `exp(d) - 1 - d` without cancellation, so float32 is exact enough. Sums of eight terms are in the
//! inputs' type, and the sums of these in float64.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use rayon::prelude::*;

use super::baseline;
use crate::llm::ops::Schedule;
use crate::simd::{Instructions, kernel, total};
use crate::{Real, pool};

/// Tokens from which on handing work to other threads costs less than it saves.
const PARALLEL_ELEMENTS: usize = 262_144;
/// Tokens in a vector.
const TOKENS: usize = 16;
/// Tokens of a block: each lane adds the terms of its eight tokens in the inputs' type.
const BLOCK: usize = 8 * TOKENS;

/// As [`baseline::k3_sums`]. It decides by [`PARALLEL_ELEMENTS`] whether to work in parallel, not by
/// the schedule `S`.
pub fn k3_sums<S: Schedule, T: Real>(
    log_probs_policy: &[T],
    log_probs_ref: &[T],
    mask: Option<&[u8]>,
    sums: &mut [T],
) {
    let n_tokens = log_probs_policy.len() / sums.len();
    let row_sum = |(row, to): (usize, &mut T)| {
        let row = row * n_tokens..(row + 1) * n_tokens;
        let (policy, reference) = (&log_probs_policy[row.clone()], &log_probs_ref[row.clone()]);
        let mask = mask.map(|mask| &mask[row]);
        let sum = k3_sum(policy, reference, mask);
        *to = T::from_f64(if sum.is_nan() {
            baseline::k3_sum(policy, reference, mask)
        } else {
            sum
        });
    };
    if sums.len() > 1 && log_probs_policy.len() >= PARALLEL_ELEMENTS && pool::threads() > 1 {
        sums.par_iter_mut().enumerate().for_each(row_sum);
    } else {
        sums.iter_mut().enumerate().for_each(row_sum);
    }
}

kernel! {
    /// The sum over one sequence's tokens; NaN if a difference of log-probabilities is outside of the
    /// range of [`Real::exp_rest`], for the baseline to compute the sum instead.
    fn k3_sum<T: Real>(policy: &[T], reference: &[T], mask: Option<&[u8]>) -> f64 = body;
}

#[inline(always)]
fn body<I: Instructions, T: Real>(policy: &[T], reference: &[T], mask: Option<&[u8]>) -> f64 {
    let (mut sums, mut in_range) = ([0.0; TOKENS / 2], true);
    for start in (0..policy.len()).step_by(BLOCK) {
        let d = differences(policy, reference, mask, start);
        let mut k3 = [T::zero(); BLOCK];
        for i in 0..BLOCK {
            k3[i] = d[i].exp_rest::<I>();
            in_range &= d[i].abs() <= T::EXP_REST_RANGE;
        }
        let mut few = [T::zero(); TOKENS];
        for vector in 0..BLOCK / TOKENS {
            for l in 0..TOKENS {
                few[l] = few[l] + k3[vector * TOKENS + l];
            }
        }
        for l in 0..TOKENS / 2 {
            let (low, high): (f64, f64) = (few[l].into(), few[l + TOKENS / 2].into());
            sums[l] += low + high;
        }
    }
    if in_range { total(sums) } else { f64::NAN }
}

/// log p_ref - log p_policy of the block of tokens from `start` on. It is 0, whose term is 0, where the
/// mask is 0 and after the sequence's end.
#[inline(always)]
fn differences<T: Real>(
    policy: &[T],
    reference: &[T],
    mask: Option<&[u8]>,
    start: usize,
) -> [T; BLOCK] {
    let n = BLOCK.min(policy.len() - start);
    let mut d = [T::zero(); BLOCK];
    let (policy, reference) = (&policy[start..start + n], &reference[start..start + n]);
    if n == BLOCK {
        subtract(policy, reference, &mut d);
    } else {
        subtract(policy, reference, &mut d[..n]);
    }
    if let Some(mask) = mask {
        let mask = &mask[start..start + n];
        for i in 0..n {
            d[i] = if mask[i] != 0 { d[i] } else { T::zero() };
        }
    }
    d
}

/// `d = reference - policy`. It is a function so that it is inlined twice, once for a whole block,
/// whose length the compiler knows then.
#[inline(always)]
fn subtract<T: Real>(policy: &[T], reference: &[T], d: &mut [T]) {
    for i in 0..d.len() {
        d[i] = reference[i] - policy[i];
    }
}
