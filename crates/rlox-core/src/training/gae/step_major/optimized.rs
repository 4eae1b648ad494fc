//! P15's optimised form: a cache line of environments at a time with the best instructions that the
//! processor has, and the returns in the same pass.
//!
//! The steps are cut into blocks of rows that fit into the first-level cache. In a block, the last line
//! of environments is computed from its last row to its first. Their advantages stay in registers, since
//! reading what was just written would take long. Then the line before it is computed from the same
//! rows, which are still in the cache. Environments beyond whole lines come first, 1, 2, 4 or 8 at a
//! time. Where a block is one row, addresses fall throughout, and the processor fetches ahead.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use std::ops::Range;

use crate::Real;
use crate::simd::{Instructions, kernel, load};

/// Elements of a block in each input. A block fits into the first-level cache, and a row of more than
/// half as many is a block of its own: the processor follows few streams of addresses better than many.
const NEAR: usize = 256;

kernel! {
    /// Writes the advantages and returns of all environments, as
    /// [`super::baseline::advantages_and_returns`] does.
    #[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
    pub fn advantages_and_returns<T: Real>(
        rewards: &[T], values: &[T], dones: &[T], last_values: &[T], gamma: T, gae_lambda: T,
        advantages: &mut [T], returns: &mut [T],
    ) = body;
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the kernel's")]
fn body<I: Instructions, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_values: &[T],
    gamma: T,
    gae_lambda: T,
    advantages: &mut [T],
    returns: &mut [T],
) {
    let (n_envs, mut end) = (last_values.len(), advantages.len());
    let rows_near = (NEAR / n_envs).max(1);
    let mut batch = StepMajorBatch {
        rewards,
        values,
        dones,
        last_values,
        gamma,
        decay: gamma * gae_lambda,
        advantages,
        returns,
    };
    while end > 0 {
        let (rows, mut env) = (end.saturating_sub(rows_near * n_envs)..end, n_envs);
        while env > 0 {
            env -= match env.trailing_zeros() {
                0 => batch.back::<I, 1>(rows.clone(), env),
                1 => batch.back::<I, 2>(rows.clone(), env),
                2 => batch.back::<I, 4>(rows.clone(), env),
                4.. if size_of::<T>() <= 4 => batch.back::<I, 16>(rows.clone(), env),
                _ => batch.back::<I, 8>(rows.clone(), env),
            }
        }
        end = rows.start;
    }
}

/// The arguments of the kernel.
struct StepMajorBatch<'a, T> {
    rewards: &'a [T],
    values: &'a [T],
    dones: &'a [T],
    last_values: &'a [T],
    gamma: T,
    decay: T,
    advantages: &'a mut [T],
    returns: &'a mut [T],
}

impl<T: Real> StepMajorBatch<'_, T> {
    /// Computes the N environments before `env`, from the last to the first row of a block; returns N.
    /// `rows` is the range of the block's elements.
    #[inline(always)]
    fn back<I: Instructions, const N: usize>(&mut self, rows: Range<usize>, env: usize) -> usize {
        let env = env - N;
        let next = rows.end + env;
        let (mut next_value, mut advantage): ([T; N], [T; N]) = if next < self.advantages.len() {
            (load(self.values, next), load(self.advantages, next))
        } else {
            (load(self.last_values, env), [T::zero(); N])
        };
        let mut end = rows.end;
        while end > rows.start {
            end -= self.last_values.len();
            let at = end + env;
            let [reward, value, done]: [[T; N]; 3] = [
                load(self.rewards, at),
                load(self.values, at),
                load(self.dones, at),
            ];
            let mut target = [T::zero(); N];
            for l in 0..N {
                let not_done = T::one() - done[l];
                let error = I::mul_add(self.gamma * next_value[l], not_done, reward[l]) - value[l];
                advantage[l] = I::mul_add(self.decay * not_done, advantage[l], error);
                target[l] = advantage[l] + value[l];
            }
            next_value = value;
            self.advantages[at..at + N].copy_from_slice(&advantage);
            self.returns[at..at + N].copy_from_slice(&target);
        }
        N
    }
}
