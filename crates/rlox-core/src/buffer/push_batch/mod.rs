//! P21's seam: storing many transitions at once.
//!
//! `append(storage, batch)` stores all of them, in order, or on an error none, and says in which rows.

pub mod baseline;
pub mod optimized;

use std::ops::Range;

use super::storage::{ObsElement, Storage};
use super::{BufferWiring, ExperienceBatch};
use crate::RloxError;

/// Stores `batch`, by the twin that `W` names.
#[inline]
pub(super) fn append<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    batch: &ExperienceBatch<'_, O>,
) -> Result<Range<usize>, RloxError> {
    if W::P21 {
        optimized::append(storage, batch)
    } else {
        baseline::append(storage, batch)
    }
}
