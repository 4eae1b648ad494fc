//! Copied twice: into a record that owns its arrays, and from there into the ring.

use std::ops::Range;

use crate::RloxError;
use crate::buffer::storage::{ObsElement, Storage};
use crate::buffer::{BufferWiring, Experience};

/// Stores `experience`; the row, as [`Storage::append`] has it.
///
/// # Errors
/// As [`Storage::append`].
pub fn push<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    experience: Experience<'_, O>,
) -> Result<Range<usize>, RloxError> {
    storage.append(&experience.to_record().as_batch())
}
