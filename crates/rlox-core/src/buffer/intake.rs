//! P3's seam: how often a transition is copied on its way from the caller's memory, such as an array of
//! NumPy, into a buffer.

use super::{BufferWiring, Experience, ObsElement, Replay};
use crate::RloxError;

/// Stores `experience`, by the twin that the buffer's wiring names.
///
/// # Errors
/// As [`Replay::append`].
#[inline]
pub fn push<O: ObsElement, B: Replay<O>>(
    buffer: &mut B,
    experience: Experience<'_, O>,
) -> Result<(), RloxError> {
    if B::Wiring::P3 {
        optimized::push(buffer, experience)
    } else {
        baseline::push(buffer, experience)
    }
}

/// The baseline copies twice: to a record that owns its arrays, and from the record to the buffer.
pub mod baseline {
    use super::*;

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
}

/// The optimised form copies once, to the buffer.
pub mod optimized {
    use super::*;

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
}
