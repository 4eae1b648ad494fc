//! Step by step, in the loop of P7's choice; then the returns.

use crate::Real;
use crate::training::{TrainingWiring, gae};

/// Writes the advantages and returns of one sequence; all slices have `advantages.len()` elements.
///
/// Whatever stands in for this function must let a non-finite input reach `advantages[0]`, which is
/// how the callers notice one.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub fn advantages_and_returns<W: TrainingWiring, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    gae_lambda: T,
    advantages: &mut [T],
    returns: &mut [T],
) {
    let loop_over_steps = if W::P7 {
        gae::optimized::advantages
    } else {
        gae::baseline::advantages
    };
    loop_over_steps(
        rewards, values, dones, last_value, gamma, gae_lambda, advantages,
    );
    for ((target, &advantage), &value) in returns.iter_mut().zip(&*advantages).zip(values) {
        *target = advantage + value;
    }
}
