//! A linear recurrence, eight steps at a time.
#![allow(
    clippy::manual_memcpy,
    clippy::needless_range_loop,
    reason = "loops become shuffles of registers; library functions are not sure to be inlined"
)]

use crate::Real;
use crate::simd::Instructions;

/// Steps that [`back`] takes at once.
pub(crate) const STEPS: usize = 8;

/// `x_i = terms_i + factors_i * x_{i+1}` from the last step to the first, with `next` after the last.
///
/// One by one, each step would have to wait for the result of the step after it. Here eight steps are done
/// together: each adds what its neighbour at distance 1, then 2, then 4 has summed so far (Hillis and
/// Steele 1986), so that only `next` has to be waited for.
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
