//! P12's baseline copies twice: to a record that owns its arrays, and from the record to the ring.

use std::ops::Range;

use crate::RloxError;
use crate::buffer::storage::{ObsElement, Storage};
use crate::buffer::{BufferWiring, Experience};

/// Stores `experience`, and returns its row as [`Storage::append`] does.
///
/// # Errors
/// As [`Storage::append`].
pub fn push<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    experience: Experience<'_, O>,
) -> Result<Range<usize>, RloxError> {
    storage.append(&experience.to_record().as_batch())
}
