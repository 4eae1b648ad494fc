//! P7's optimised form: the last step is done before the loop, so that the loop has no branch for it.

use crate::Real;

/// Writes the advantages of one sequence, as [`super::baseline::advantages`] does.
#[inline]
pub fn advantages<T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    gae_lambda: T,
    advantages: &mut [T],
) {
    let step = |t: usize, next_value: T, next_advantage: T| {
        let not_done = T::one() - dones[t];
        let delta = rewards[t] + gamma * next_value * not_done - values[t];
        delta + gamma * gae_lambda * not_done * next_advantage
    };
    let Some(last) = advantages.len().checked_sub(1) else {
        return;
    };
    let mut gae = step(last, last_value, T::zero());
    advantages[last] = gae;
    for t in (0..last).rev() {
        gae = step(t, values[t + 1], gae);
        advantages[t] = gae;
    }
}
