//! Copied twice: into a record that owns its arrays, and from there into the ring.

use rlox_core::RloxError;
use rlox_core::buffer::{Experience, ObsElement, Replay};

pub(crate) fn push<O: ObsElement>(
    buffer: &mut impl Replay<O>,
    experience: Experience<'_, O>,
) -> Result<(), RloxError> {
    buffer.push(experience.to_record())
}
