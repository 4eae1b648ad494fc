//! Column by column: each is copied in one piece, or in two where the ring ends between them.

use crate::RloxError;
use crate::buffer::{ExperienceBatch, ObsElement, Replay};

/// Stores `batch`.
///
/// # Errors
/// As [`Replay::push`].
pub fn push_batch<O: ObsElement, B: Replay<O>>(
    buffer: &mut B,
    batch: &ExperienceBatch<'_, O>,
) -> Result<(), RloxError> {
    buffer.storage().check_batch(batch)?;
    buffer.store(batch);
    Ok(())
}
