//! Copied once, straight into the ring.

use crate::RloxError;
use crate::buffer::{Experience, ObsElement, Replay};

/// Stores `experience`.
///
/// # Errors
/// As [`Replay::append`].
#[inline]
pub fn push<O: ObsElement, B: Replay<O>>(
    buffer: &mut B,
    experience: Experience<'_, O>,
) -> Result<(), RloxError> {
    buffer.append(&experience.as_batch())
}
