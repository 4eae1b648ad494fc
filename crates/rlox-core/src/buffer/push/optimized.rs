//! Borrowed arrays are primary: they are written as they are, and an owned record lends its own.

use crate::RloxError;
use crate::buffer::storage::{ObsElement, Storage};
use crate::buffer::{BufferWiring, Experience, ExperienceRecord};

/// Stores a transition that owns its arrays.
///
/// # Errors
/// As [`Storage::write`].
pub fn push_record<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    record: ExperienceRecord<O>,
) -> Result<usize, RloxError> {
    push_slices(storage, record.as_experience())
}

/// Stores a transition whose arrays lie elsewhere.
///
/// # Errors
/// As [`Storage::write`].
pub fn push_slices<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    experience: Experience<'_, O>,
) -> Result<usize, RloxError> {
    storage.write(experience)
}
