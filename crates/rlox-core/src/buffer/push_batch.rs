//! P21's seam: how a batch of transitions is stored, one by one or column by column.

use std::ops::Range;

use super::storage::{ObsElement, Storage};
use super::{BufferWiring, Experience, ExperienceBatch, push};
use crate::RloxError;

/// Stores `batch`, by the twin that `W` names, and returns its rows as [`Storage::append`] does.
#[inline]
pub(super) fn append<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    batch: &ExperienceBatch<'_, O>,
) -> Result<Range<usize>, RloxError> {
    if W::P21 {
        storage.append(batch) // a copy for each column, or two where the batch goes beyond the ring's end
    } else {
        baseline::append(storage, batch)
    }
}

/// The baseline stores one transition after the other.
pub mod baseline {
    use super::*;

    /// Stores `batch`, and returns its rows as [`Storage::append`] does.
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
}
