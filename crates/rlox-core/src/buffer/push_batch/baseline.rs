//! Transition by transition.

use std::ops::Range;

use crate::RloxError;
use crate::buffer::storage::{ObsElement, Storage};
use crate::buffer::{BufferWiring, Experience, ExperienceBatch, push};

/// Stores `batch`; the rows, as [`Storage::append`] has them.
///
/// # Errors
/// As [`Storage::append`].
pub fn append<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    batch: &ExperienceBatch<'_, O>,
) -> Result<Range<usize>, RloxError> {
    storage.check(batch)?;
    let (first, n) = (storage.next_row(), batch.reward.len());
    let (obs_dim, act_dim) = (storage.obs_dim(), storage.act_dim());
    for row in 0..n {
        let obs = row * obs_dim..(row + 1) * obs_dim;
        let one = Experience {
            obs: &batch.obs[obs.clone()],
            next_obs: &batch.next_obs[obs],
            action: &batch.action[row * act_dim..(row + 1) * act_dim],
            reward: batch.reward[row],
            terminated: batch.terminated[row],
            truncated: batch.truncated[row],
        };
        push::push(storage, one)?;
    }
    Ok(first + n.saturating_sub(storage.capacity())..first + n)
}
