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
    let (one, zero) = (T::one(), T::zero());
    let (by_factors, by_terms) = (after_one(factors, one), after_one(terms, zero));
    (factors, terms) = joined::<I, T>(factors, terms, by_factors, by_terms);
    let (by_factors, by_terms) = (after_two(factors, one), after_two(terms, zero));
    (factors, terms) = joined::<I, T>(factors, terms, by_factors, by_terms);
    let (by_factors, by_terms) = (after_four(factors, one), after_four(terms, zero));
    (factors, terms) = joined::<I, T>(factors, terms, by_factors, by_terms);
    for i in 0..STEPS {
        terms[i] = I::mul_add(factors[i], next, terms[i]);
    }
    terms
}

/// Steps, each with what those after it have summed.
#[inline(always)]
fn joined<I: Instructions, T: Real>(
    mut factors: [T; STEPS],
    mut terms: [T; STEPS],
    later_factors: [T; STEPS],
    later_terms: [T; STEPS],
) -> ([T; STEPS], [T; STEPS]) {
    for i in 0..STEPS {
        terms[i] = I::mul_add(factors[i], later_terms[i], terms[i]);
        factors[i] = factors[i] * later_factors[i];
    }
    (factors, terms)
}

// Element by element, and not in a loop: a loop is at times unrolled too late for the compiler to see
// that the elements can stay in registers. GAE then took ten times as long.

/// The step after each, and `end` after the last.
#[inline(always)]
fn after_one<T: Copy>([_, b, c, d, e, f, g, h]: [T; STEPS], end: T) -> [T; STEPS] {
    [b, c, d, e, f, g, h, end]
}

/// The second step after each.
#[inline(always)]
fn after_two<T: Copy>([_, _, c, d, e, f, g, h]: [T; STEPS], end: T) -> [T; STEPS] {
    [c, d, e, f, g, h, end, end]
}

/// The fourth step after each.
#[inline(always)]
fn after_four<T: Copy>([_, _, _, _, e, f, g, h]: [T; STEPS], end: T) -> [T; STEPS] {
    [e, f, g, h, end, end, end, end]
}
