//! Eight steps at a time where no episode ends among them, step by step elsewhere.
//!
//! Without an end the recurrence is `A_t = delta_t + decay * A_{t+1}`, and a block of it
//!
//! ```text
//! A_{t+i} = sum over j >= i of decay^(j-i) * delta_{t+j}  +  decay^(8-i) * A_{t+8}
//! ```
//!
//! so that a block waits once for the one after it, not eight times.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use crate::Real;
use crate::simd::{Instructions, kernel, load};

const BLOCK: usize = 8;

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
    // What an error counts in the advantages of the steps before it, and what the next block does.
    let mut powers = [T::one(); BLOCK + 1];
    for k in 1..=BLOCK {
        powers[k] = powers[k - 1] * decay;
    }
    let (mut weights, mut carried) = ([[T::zero(); BLOCK]; BLOCK], [T::zero(); BLOCK]);
    for j in 0..BLOCK {
        for i in 0..j {
            weights[j][i] = powers[j - i];
        }
        carried[j] = powers[BLOCK - j];
    }

    let (mut end, mut next_advantage) = (n, T::zero());
    while end > 0 {
        // The value that follows a block is read from the array, so the last step stands alone.
        let start = end - if (BLOCK..n).contains(&end) { BLOCK } else { 1 };
        if end - start == BLOCK && !ends(load(dones, start)) {
            let value: [T; BLOCK] = load(values, start);
            let next_value: [T; BLOCK] = load(values, start + 1);
            let mut error: [T; BLOCK] = load(rewards, start);
            for i in 0..BLOCK {
                error[i] = I::mul_add(gamma, next_value[i], error[i]) - value[i];
            }
            let mut advantage = error;
            for j in 1..BLOCK {
                for i in 0..BLOCK {
                    advantage[i] = I::mul_add(weights[j][i], error[j], advantage[i]);
                }
            }
            for i in 0..BLOCK {
                advantage[i] = I::mul_add(carried[i], next_advantage, advantage[i]);
            }
            next_advantage = advantage[0];
            advantages[start..end].copy_from_slice(&advantage);
            for i in 0..BLOCK {
                advantage[i] = advantage[i] + value[i];
            }
            returns[start..end].copy_from_slice(&advantage);
        } else {
            for t in (start..end).rev() {
                let next_value = if t + 1 < n { values[t + 1] } else { last_value };
                let not_done = T::one() - dones[t];
                let error = I::mul_add(gamma * next_value, not_done, rewards[t]) - values[t];
                next_advantage = I::mul_add(decay * not_done, next_advantage, error);
                advantages[t] = next_advantage;
                returns[t] = next_advantage + values[t];
            }
        }
        end = start;
    }
}

/// Whether any of these steps ends an episode, if only in part.
#[inline(always)]
fn ends<T: Real>(dones: [T; BLOCK]) -> bool {
    let mut ends = false;
    for i in 0..BLOCK {
        ends |= dones[i] != T::zero();
    }
    ends
}
