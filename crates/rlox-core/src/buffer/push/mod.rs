//! P12's seam: which form of a transition, owned or borrowed, is the primary one of a push.
//!
//! Two functions, each the other's detour: `push_record(storage, record)` for a transition that owns
//! its arrays and `push_slices(storage, experience)` for borrowed ones. Both return the row written.

pub mod baseline;
pub mod optimized;

use super::storage::{ObsElement, Storage};
use super::{BufferWiring, Experience, ExperienceRecord};
use crate::RloxError;

/// Stores a transition that owns its arrays, by the twin that `W` names.
pub(super) fn push_record<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    record: ExperienceRecord<O>,
) -> Result<usize, RloxError> {
    if W::P12 {
        optimized::push_record(storage, record)
    } else {
        baseline::push_record(storage, record)
    }
}

/// Stores a transition whose arrays lie elsewhere, by the twin that `W` names.
pub(super) fn push_slices<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    experience: Experience<'_, O>,
) -> Result<usize, RloxError> {
    if W::P12 {
        optimized::push_slices(storage, experience)
    } else {
        baseline::push_slices(storage, experience)
    }
}
