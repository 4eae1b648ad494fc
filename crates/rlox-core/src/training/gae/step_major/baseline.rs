//! P15's baseline: all environments step by step from the last step, with the instructions that every
//! processor of the target has; then the returns, in a second pass.

use crate::Real;

/// Writes the advantages and returns of `last_values.len()` environments, at least one. The other slices
/// have `advantages.len()` elements: a row for each step, with an element for each environment.
///
/// An input that is not finite makes its environment's advantage in the first row not finite, by which the
/// caller notices it. Every other form of this function must do so, too.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub fn advantages_and_returns<T: Real>(
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
    let mut next_values = last_values;
    let mut next_advantages: &[T] = &vec![T::zero(); n_envs];
    let mut rest = &mut *advantages;
    while let Some(start) = rest.len().checked_sub(n_envs) {
        let (head, row) = rest.split_at_mut(start);
        let steps = start..start + n_envs;
        let step_values = &values[steps.clone()];
        let inputs = rewards[steps.clone()]
            .iter()
            .zip(step_values)
            .zip(&dones[steps]);
        let next = next_values.iter().zip(next_advantages);
        for ((advantage, ((&reward, &value), &done)), (&next_value, &next_advantage)) in
            row.iter_mut().zip(inputs).zip(next)
        {
            let not_done = T::one() - done;
            let delta = reward + gamma * next_value * not_done - value;
            *advantage = delta + gamma * gae_lambda * not_done * next_advantage;
        }
        (next_values, next_advantages, rest) = (step_values, row, head);
    }
    for ((target, &advantage), &value) in returns.iter_mut().zip(&*advantages).zip(values) {
        *target = advantage + value;
    }
}
