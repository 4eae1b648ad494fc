//! P7's baseline: the inner loop has a branch in every step, on whether it is the last one.

use crate::Real;

/// Writes the advantages of one sequence. All slices have `advantages.len()` elements.
///
/// An input that is not finite makes `advantages[0]` not finite, by which the callers notice it. Every
/// other form of this function must do so, too.
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
