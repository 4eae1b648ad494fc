//! Transition by transition.

use crate::RloxError;
use crate::buffer::{Experience, ExperienceBatch, ObsElement, Replay};

/// Stores `batch`.
///
/// # Errors
/// As [`Replay::push`].
pub fn push_batch<O: ObsElement, B: Replay<O>>(
    buffer: &mut B,
    batch: &ExperienceBatch<'_, O>,
) -> Result<(), RloxError> {
    buffer.storage().check_batch(batch)?;
    let (obs_dim, act_dim) = (buffer.storage().obs_dim(), buffer.storage().act_dim());
    for row in 0..batch.reward.len() {
        let obs = row * obs_dim..(row + 1) * obs_dim;
        buffer.push_slices(Experience {
            obs: &batch.obs[obs.clone()],
            next_obs: &batch.next_obs[obs],
            action: &batch.action[row * act_dim..(row + 1) * act_dim],
            reward: batch.reward[row],
            terminated: batch.terminated[row],
            truncated: batch.truncated[row],
        })?;
    }
    Ok(())
}
