//! P12's seam: how often a transition is copied when it is stored by itself, as P21's baseline does with
//! each transition of a batch.

pub mod baseline;
pub mod optimized;

use std::ops::Range;

use super::storage::{ObsElement, Storage};
use super::{BufferWiring, Experience};
use crate::RloxError;

/// Stores a transition, by the twin that `W` names, and returns its row as [`Storage::append`] does.
pub(super) fn push<O: ObsElement, W: BufferWiring>(
    storage: &mut Storage<O, W>,
    experience: Experience<'_, O>,
) -> Result<Range<usize>, RloxError> {
    if W::P12 {
        optimized::push(storage, experience)
    } else {
        baseline::push(storage, experience)
    }
}
