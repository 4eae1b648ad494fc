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
    let (mut sums, mut largest) = ([0.0; TOKENS], [T::zero(); TOKENS]);
    // Here and not in each block, which would begin by writing zeros.
    let (mut d, mut terms) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
    let (blocks, few) = policy.as_chunks::<BLOCK>();
    let (of_reference, few_of_reference) = reference.as_chunks::<BLOCK>();
    let (of_mask, few_of_mask) = mask.unwrap_or_default().as_chunks::<BLOCK>();
    if !blocks.is_empty() {
        // The sums of even and of odd blocks are apart, at an index that the compiler does not know. So
        // they lie in memory and are added to vector by vector. In registers the compiler would hold them
        // in pairs, and taking vectors apart for that would take as long as the terms.
        let mut lanes = [[0.0; TOKENS]; 2];
        for i in 0..blocks.len() {
            let mask = of_mask.get(i).map(|mask| &mask[..]);
            subtract(&blocks[i], &of_reference[i], mask, &mut d);
            add::<I, T>(&d, &mut terms, &mut lanes[i % 2], &mut largest);
        }
        for l in 0..TOKENS {
            sums[l] = lanes[0][l] + lanes[1][l];
        }
    }
    if !few.is_empty() {
        let mask = mask.is_some().then_some(few_of_mask);
        subtract(few, few_of_reference, mask, &mut d[..few.len()]);
        d[few.len()..].fill(T::zero());
        add::<I, T>(&d, &mut terms, &mut sums, &mut largest);
    }
    let mut halves = [0.0; TOKENS / 2];
    for l in 0..TOKENS / 2 {
        halves[l] = sums[l] + sums[l + TOKENS / 2];
    }
    if largest.iter().all(|&size| size <= T::EXP_REST_RANGE) {
        total(halves)
    } else {
        f64::NAN
    }
}

/// `d = reference - policy`. It is 0, whose term is 0, where the mask is 0. Inlined for whole blocks, the
/// compiler knows the length.
#[inline(always)]
fn subtract<T: Real>(policy: &[T], reference: &[T], mask: Option<&[u8]>, d: &mut [T]) {
    let n = d.len();
    let (policy, reference) = (&policy[..n], &reference[..n]);
    let Some(mask) = mask else {
        for i in 0..n {
            d[i] = reference[i] - policy[i];
        }
        return;
    };
    let mask = &mask[..n];
    for i in 0..n {
        let difference = reference[i] - policy[i];
        d[i] = if mask[i] != 0 { difference } else { T::zero() };
    }
}

/// Adds the terms of the differences `d` to `sums`, and leaves them in `terms`. The size of a difference
/// becomes its lane's `largest` if it is larger; that of NaN never is, but its term is NaN, too.
#[inline(always)]
fn add<I: Instructions, T: Real>(
    d: &[T; BLOCK],
    terms: &mut [T; BLOCK],
    sums: &mut [f64; TOKENS],
    largest: &mut [T; TOKENS],
) {
    for i in 0..BLOCK {
        terms[i] = d[i].exp_rest::<I>();
    }
    let mut few = [T::zero(); TOKENS];
    for vector in terms.as_chunks::<TOKENS>().0 {
        for l in 0..TOKENS {
            few[l] = few[l] + vector[l];
        }
    }
    for l in 0..TOKENS {
        sums[l] += few[l].into();
    }
    // At the end: if it stood before the terms, the compiler would copy all of `d` first.
    for vector in d.as_chunks::<TOKENS>().0 {
        for l in 0..TOKENS {
            let size = vector[l].abs();
            largest[l] = if size > largest[l] { size } else { largest[l] };
        }
    }
}
