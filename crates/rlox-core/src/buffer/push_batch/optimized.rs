//! Column by column: each is copied in one piece, or in two where the ring ends between them.

use std::ops::Range;

use crate::RloxError;
use crate::buffer::storage::{ObsElement, Storage};
use crate::buffer::{BufferWiring, ExperienceBatch};

/// Stores `batch`; the rows, as [`Storage::append`] has them.
///
/// # Errors
/// As [`Storage::append`].
#[inline]
pub fn append<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    batch: &ExperienceBatch<'_, O>,
) -> Result<Range<usize>, RloxError> {
    storage.append(batch)
}
