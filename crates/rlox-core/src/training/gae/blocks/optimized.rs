//! P14's optimised form: eight steps at a time, by a scan of the recurrence
//! `A_t = delta_t + decay * (1 - done_t) * A_{t+1}`. Episodes may end at any of the steps.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use crate::Real;
use crate::simd::{Instructions, kernel, load, prefetch};
use crate::training::scan::{self, STEPS};

kernel! {
    /// Writes the advantages and returns of one sequence, as
    /// [`super::baseline::advantages_and_returns`] does.
    #[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
    pub fn advantages_and_returns<T: Real>(
        rewards: &[T], values: &[T], dones: &[T], last_value: T, gamma: T, gae_lambda: T,
        advantages: &mut [T], returns: &mut [T],
    ) = body;
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the kernel's")]
fn body<I: Instructions, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    gae_lambda: T,
    advantages: &mut [T],
    returns: &mut [T],
) {
    let n = advantages.len();
    let decay = gamma * gae_lambda;
    let (mut end, mut next_advantage) = (n, T::zero());
    while end > 0 {
        // A block reads the value after its last step from the array, so the last step is done alone.
        if (STEPS..n).contains(&end) {
            let start = end - STEPS;
            prefetch_ahead(advantages, start);
            prefetch_ahead(returns, start);
            let [value, next_value, reward, done]: [[T; STEPS]; 4] = [
                load(values, start),
                load(values, start + 1),
                load(rewards, start),
                load(dones, start),
            ];
            let (mut error, mut decays) = ([T::zero(); STEPS], [T::zero(); STEPS]);
            for i in 0..STEPS {
                let not_done = T::one() - done[i];
                error[i] = I::mul_add(gamma * next_value[i], not_done, reward[i]) - value[i];
                decays[i] = decay * not_done;
            }
            let mut advantage = scan::back::<I, T>(decays, error, next_advantage);
            next_advantage = advantage[0];
            advantages[start..end].copy_from_slice(&advantage);
            for i in 0..STEPS {
                advantage[i] = advantage[i] + value[i];
            }
            returns[start..end].copy_from_slice(&advantage);
            end = start;
        } else {
            end -= 1;
            let next_value = if end + 1 < n {
                values[end + 1]
            } else {
                last_value
            };
            let not_done = T::one() - dones[end];
            let error = I::mul_add(gamma * next_value, not_done, rewards[end]) - values[end];
            next_advantage = I::mul_add(decay * not_done, next_advantage, error);
            advantages[end] = next_advantage;
            returns[end] = next_advantage + values[end];
        }
    }
}

/// How many steps ahead [`prefetch_ahead`] looks: four cache lines of float32, eight of float64.
const AHEAD: usize = 64;

/// Prefetches the line of `results` that will be written [`AHEAD`] steps after the one at `start`. A
/// processor that writes downwards through an array may fetch each line only when it comes to it: where
/// the arrays exceed the first cache, one of Intel's took twice as long.
#[inline(always)]
fn prefetch_ahead<T>(results: &[T], start: usize) {
    prefetch(results.as_ptr().wrapping_add(start.saturating_sub(AHEAD)));
}
