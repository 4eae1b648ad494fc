//! P3's seam: how a transition in somebody else's memory, such as NumPy's, enters a buffer.

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

/// Copied twice: into a record that owns its arrays, and from there into the ring.
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

/// Copied once, straight into the ring.
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
