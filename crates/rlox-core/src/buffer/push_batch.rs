//! P21's seam: storing many transitions at once.
//!
//! `append(storage, batch)` stores all of them, in order, or on an error none, and says in which rows.

use std::ops::Range;

use super::storage::{ObsElement, Storage};
use super::{BufferWiring, Experience, ExperienceBatch, push};
use crate::RloxError;

/// Stores `batch`, by the twin that `W` names.
#[inline]
pub(super) fn append<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    batch: &ExperienceBatch<'_, O>,
) -> Result<Range<usize>, RloxError> {
    if W::P21 {
        storage.append(batch) // column by column: each in one piece, or in two where the ring ends
    } else {
        baseline::append(storage, batch)
    }
}

/// Transition by transition.
pub mod baseline {
    use super::*;

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
}
