//! Row by row from the last step, as the target's least instructions allow; then the returns.

use crate::Real;

/// Writes the advantages and returns of `last_values.len()` environments, at least one; the other
/// slices have `advantages.len()` elements, whole rows of environments.
///
/// Whatever stands in for this function must let a non-finite input reach its environment's advantage
/// in the first row, which is how the caller notices one.
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
