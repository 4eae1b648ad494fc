//! The owned record is primary: borrowed arrays are cloned into one first.

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
    storage.write(record.as_experience())
}

/// Stores a transition whose arrays lie elsewhere.
///
/// # Errors
/// As [`Storage::write`].
pub fn push_slices<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    experience: Experience<'_, O>,
) -> Result<usize, RloxError> {
    push_record(storage, experience.to_record())
}
