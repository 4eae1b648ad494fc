//! A linear recurrence, computed eight steps at a time by a scan.
#![allow(
    clippy::manual_memcpy,
    clippy::needless_range_loop,
    reason = "loops become shuffles of registers; library functions are not sure to be inlined"
)]

use crate::Real;
use crate::simd::Instructions;

/// How many steps [`back`] does at a time.
pub(crate) const STEPS: usize = 8;

/// `x_i = terms_i + factors_i * x_{i+1}` for eight steps, from the last to the first. `next` is the `x`
/// after the last one.
///
/// Step by step, each `x` would have to wait for the one after it. Here three rounds combine each step with
/// the one at distance 1, then 2, then 4 (the scan of Hillis and Steele 1986). The rounds do not need
/// `next`, so only a last multiply-add has to wait for it.
#[inline(always)]
pub(crate) fn back<I: Instructions, T: Real>(
    mut factors: [T; STEPS],
    mut terms: [T; STEPS],
    next: T,
) -> [T; STEPS] {
    for distance in [1, 2, 4] {
        let (mut later_factors, mut later_terms) = ([T::one(); STEPS], [T::zero(); STEPS]);
        for i in 0..STEPS - distance {
            later_factors[i] = factors[i + distance];
            later_terms[i] = terms[i + distance];
        }
        for i in 0..STEPS {
            terms[i] = I::mul_add(factors[i], later_terms[i], terms[i]);
            factors[i] = factors[i] * later_factors[i];
        }
    }
    for i in 0..STEPS {
        terms[i] = I::mul_add(factors[i], next, terms[i]);
    }
    terms
}
