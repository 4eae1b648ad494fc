//! P12's seam: a transition stored by itself, as it lies in somebody's memory or by way of a copy of its
//! own.
//!
//! `push(storage, experience)` says which row it is in.

pub mod baseline;
pub mod optimized;

use std::ops::Range;

use super::storage::{ObsElement, Storage};
use super::{BufferWiring, Experience};
use crate::RloxError;

/// Stores a transition, by the twin that `W` names.
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
