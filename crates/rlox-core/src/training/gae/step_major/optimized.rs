//! Row by row from the last step, eight environments at a time with the best instructions there are,
//! the returns in the same pass.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use crate::Real;
use crate::simd::{Instructions, kernel, load};

const WIDTH: usize = 8;

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
    let n_envs = last_values.len();
    let mut batch = Batch {
        rewards,
        values,
        dones,
        last_values,
        gamma,
        decay: gamma * gae_lambda,
        advantages,
        returns,
    };
    let mut row = batch.advantages.len();
    while row > 0 {
        row -= n_envs;
        let mut env = 0;
        while env + WIDTH <= n_envs {
            batch.step::<I, WIDTH>(row, env);
            env += WIDTH;
        }
        while env < n_envs {
            batch.step::<I, 1>(row, env);
            env += 1;
        }
    }
}

struct Batch<'a, T> {
    rewards: &'a [T],
    values: &'a [T],
    dones: &'a [T],
    last_values: &'a [T],
    gamma: T,
    decay: T,
    advantages: &'a mut [T],
    returns: &'a mut [T],
}

impl<T: Real> Batch<'_, T> {
    /// One step of N environments from `env` on, in the row that starts at `row`.
    #[inline(always)]
    fn step<I: Instructions, const N: usize>(&mut self, row: usize, env: usize) {
        let (at, next) = (row + env, row + env + self.last_values.len());
        let (next_value, next_advantage): ([T; N], [T; N]) = if next < self.advantages.len() {
            (load(self.values, next), load(self.advantages, next))
        } else {
            (load(self.last_values, env), [T::zero(); N])
        };
        let [reward, value, done]: [[T; N]; 3] = [
            load(self.rewards, at),
            load(self.values, at),
            load(self.dones, at),
        ];
        let (mut advantage, mut target) = ([T::zero(); N], [T::zero(); N]);
        for l in 0..N {
            let not_done = T::one() - done[l];
            let error = I::mul_add(self.gamma * next_value[l], not_done, reward[l]) - value[l];
            advantage[l] = I::mul_add(self.decay * not_done, next_advantage[l], error);
            target[l] = advantage[l] + value[l];
        }
        self.advantages[at..at + N].copy_from_slice(&advantage);
        self.returns[at..at + N].copy_from_slice(&target);
    }
}
