//! The inner loop that asks at every step whether it is the last.

use crate::Real;

/// Writes the advantages of one sequence; all slices have `advantages.len()` elements.
///
/// Whatever stands in for this function must let a non-finite input reach `advantages[0]`, which is
/// how the callers notice one.
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
    let n = advantages.len();
    let mut gae = T::zero();
    for t in (0..n).rev() {
        let next_value = if t == n - 1 {
            last_value
        } else {
            values[t + 1]
        };
        let not_done = T::one() - dones[t];
        let delta = rewards[t] + gamma * next_value * not_done - values[t];
        gae = delta + gamma * gae_lambda * not_done * gae;
        advantages[t] = gae;
    }
}
