//! P14's baseline: step by step, in either of P7's loops; then the returns, in a second pass.

use crate::Real;
use crate::training::{TrainingWiring, gae};

/// Writes the advantages and returns of one sequence. All slices have `advantages.len()` elements.
///
/// An input that is not finite makes `advantages[0]` not finite, by which the callers notice it. Every
/// other form of this function must do so, too.
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
