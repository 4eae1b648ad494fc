//! P14's seam: how GAE is computed for one sequence, step by step or a block of steps at a time.

pub mod baseline;
pub mod optimized;

use crate::Real;
use crate::training::TrainingWiring;

/// Writes the advantages and returns of one sequence, as [`baseline::advantages_and_returns`] does,
/// by the twin that `W` names.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub(super) fn advantages_and_returns<W: TrainingWiring, T: Real>(
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    gae_lambda: T,
    advantages: &mut [T],
    returns: &mut [T],
) {
    let twin = if W::P14 {
        optimized::advantages_and_returns
    } else {
        baseline::advantages_and_returns::<W, T>
    };
    twin(
        rewards, values, dones, last_value, gamma, gae_lambda, advantages, returns,
    );
}
