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
    let mut sums = Sums {
        lanes: [[0.0; TOKENS]; 2],
        in_range: true,
    };
    let (blocks, few) = policy.as_chunks::<BLOCK>();
    let (of_reference, few_of_reference) = reference.as_chunks::<BLOCK>();
    let (of_mask, few_of_mask) = mask.unwrap_or_default().as_chunks::<BLOCK>();
    for i in 0..blocks.len() {
        sums.add::<I, T>(i % 2, &blocks[i], &of_reference[i], of_mask.get(i));
    }
    if !few.is_empty() {
        let counts = mask.is_some().then(|| filled(few_of_mask));
        sums.add::<I, T>(0, &filled(few), &filled(few_of_reference), counts.as_ref());
    }
    if sums.in_range {
        let [even, odd] = sums.lanes;
        let mut halves = [0.0; TOKENS / 2];
        for l in 0..TOKENS / 2 {
            halves[l] = (even[l] + odd[l]) + (even[l + TOKENS / 2] + odd[l + TOKENS / 2]);
        }
        total(halves)
    } else {
        f64::NAN
    }
}

/// `few` and then zeros. Tokens whose log-probabilities are both 0 have the term 0.
#[inline(always)]
fn filled<T: Copy + num_traits::Zero>(few: &[T]) -> [T; BLOCK] {
    let mut block = [T::zero(); BLOCK];
    block[..few.len()].copy_from_slice(few);
    block
}

/// Sums of k3, and whether all differences were in the range of [`Real::exp_rest`].
///
/// The sums of even and of odd blocks are apart, at an index that the compiler does not know. So they lie
/// in memory and are added to vector by vector. In registers the compiler would hold them in pairs, and
/// taking vectors apart for that would take as long as the terms.
struct Sums {
    lanes: [[f64; TOKENS]; 2],
    in_range: bool,
}

impl Sums {
    /// Adds the terms of a block to `lanes[to]`. Where its `mask` is 0, a difference counts as 0, whose
    /// term is 0.
    #[inline(always)]
    fn add<I: Instructions, T: Real>(
        &mut self,
        to: usize,
        policy: &[T; BLOCK],
        reference: &[T; BLOCK],
        mask: Option<&[u8; BLOCK]>,
    ) {
        let mut d = [T::zero(); BLOCK];
        for i in 0..BLOCK {
            d[i] = reference[i] - policy[i];
        }
        if let Some(mask) = mask {
            for i in 0..BLOCK {
                d[i] = if mask[i] != 0 { d[i] } else { T::zero() };
            }
        }
        for i in 0..BLOCK {
            self.in_range &= d[i].abs() <= T::EXP_REST_RANGE;
            d[i] = d[i].exp_rest::<I>();
        }
        let mut few = [T::zero(); TOKENS];
        for vector in d.as_chunks::<TOKENS>().0 {
            for l in 0..TOKENS {
                few[l] = few[l] + vector[l];
            }
        }
        for l in 0..TOKENS {
            self.lanes[to][l] += few[l].into();
        }
    }
}
