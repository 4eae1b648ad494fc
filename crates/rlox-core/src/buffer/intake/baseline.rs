//! Copied twice: into a record that owns its arrays, and from there into the ring.

use crate::RloxError;
use crate::buffer::{Experience, ObsElement, Replay};

/// Stores `experience`.
///
/// # Errors
/// As [`Replay::append`].
pub fn push<O: ObsElement, B: Replay<O>>(
    buffer: &mut B,
    experience: Experience<'_, O>,
) -> Result<(), RloxError> {
    buffer.append(&experience.to_record().as_batch())
}
