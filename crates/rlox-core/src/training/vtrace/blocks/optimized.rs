//! P18's optimised form: a block of steps at a time, from the end, in three passes. The first computes
//! what depends on one step alone: its weights and its TD error. The second computes the recurrence, by a
//! scan. The third computes the advantages, which depend on the recurrence. The first and the third
//! are vectorised over steps.
//!
//! A scan multiplies the weights of several steps with each other, which the recurrence does not. If
//! such a product overflows, it is infinite, and times a correction of zero it is NaN. A sequence in
//! which that happens is computed step by step instead.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use super::baseline;
use crate::Real;
use crate::simd::{Instructions, kernel, load};
use crate::training::TrainingWiring;
use crate::training::scan::{self, STEPS};

/// Steps of a block, so that what one pass computes for the next stays in the first-level cache.
const BLOCK: usize = 256;

/// Writes the targets and advantages of one sequence, as [`baseline::targets`] does.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub fn targets<W: TrainingWiring, T: Real>(
    log_rhos: &[T],
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    rho_bar: T,
    c_bar: T,
    vs: &mut [T],
    pg_advantages: &mut [T],
) {
    in_blocks(
        log_rhos,
        rewards,
        values,
        dones,
        last_value,
        gamma,
        rho_bar,
        c_bar,
        vs,
        pg_advantages,
    );
    // If a product of weights can overflow, any target may be NaN while the first one is finite. If none
    // can, the first target is not finite whenever another one is not.
    let looked_at = if product_is_finite(c_bar) {
        1
    } else {
        vs.len()
    };
    if !vs.iter().take(looked_at).all(|target| target.is_finite()) {
        baseline::targets::<W, T>(
            log_rhos,
            rewards,
            values,
            dones,
            last_value,
            gamma,
            rho_bar,
            c_bar,
            vs,
            pg_advantages,
        );
    }
}

/// Whether a product of as many weights as a scan multiplies is finite, if each is `c_bar`, the largest.
fn product_is_finite<T: Real>(c_bar: T) -> bool {
    (0..STEPS.ilog2())
        .fold(c_bar, |product, _| product * product)
        .is_finite()
}

kernel! {
    /// Writes the targets and advantages, vectorised. Some may be NaN if a product of weights overflows.
    #[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
    fn in_blocks<T: Real>(
        log_rhos: &[T], rewards: &[T], values: &[T], dones: &[T], last_value: T, gamma: T,
        rho_bar: T, c_bar: T, vs: &mut [T], pg_advantages: &mut [T],
    ) = body;
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the kernel's")]
fn body<I: Instructions, T: Real>(
    log_rhos: &[T],
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    rho_bar: T,
    c_bar: T,
    vs: &mut [T],
    pg_advantages: &mut [T],
) {
    let zeros = [T::zero(); BLOCK];
    let (mut rhos, mut discounts, mut traces, mut errors) = (zeros, zeros, zeros, zeros);
    // The last element of each is that of the step after the block.
    let (mut value, mut target) = ([last_value; BLOCK + 1], [last_value; BLOCK + 1]);
    let (mut end, mut correction) = (vs.len(), T::zero()); // vs_{t+1} - V(s_{t+1})
    while end > 0 {
        let n = BLOCK.min(end);
        let start = end - n;
        (value[n], target[n]) = (value[0], target[0]);
        value[..n].copy_from_slice(&values[start..end]);
        let (log_rhos, rewards, dones) = (
            &log_rhos[start..end],
            &rewards[start..end],
            &dones[start..end],
        );
        for i in 0..n {
            let weight = log_rhos[i].exp_lane::<I>();
            rhos[i] = least(weight, rho_bar);
            discounts[i] = gamma * (T::one() - dones[i]);
            traces[i] = discounts[i] * least(weight, c_bar);
            errors[i] = rhos[i] * (I::mul_add(discounts[i], value[i + 1], rewards[i]) - value[i]);
        }
        let whole = n - n % STEPS;
        for i in (whole..n).rev() {
            correction = I::mul_add(traces[i], correction, errors[i]);
            target[i] = value[i] + correction;
        }
        for first in (0..whole).step_by(STEPS).rev() {
            let corrections =
                scan::back::<I, T>(load(&traces, first), load(&errors, first), correction);
            correction = corrections[0];
            for i in 0..STEPS {
                target[first + i] = value[first + i] + corrections[i];
            }
        }
        vs[start..end].copy_from_slice(&target[..n]);
        let pg_advantages = &mut pg_advantages[start..end];
        for i in 0..n {
            let error = I::mul_add(discounts[i], target[i + 1], rewards[i]) - value[i];
            pg_advantages[i] = rhos[i] * error;
        }
        end = start;
    }
}

/// The smaller one of a weight and its bar, written so that it is one instruction.
#[inline(always)]
fn least<T: Real>(weight: T, bar: T) -> T {
    if weight < bar { weight } else { bar }
}
