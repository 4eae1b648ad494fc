//! P24's seam: how the two observations of a transition are kept.

mod by_index;
mod by_width;

pub use by_index::ByIndex;
pub use by_width::{ByWidth, Twice, WIDE};

use std::fmt::Debug;

use super::storage::ObsElement;
use crate::RloxError;

/// The observations of a ring of transitions. The one thing that varies between variants of
/// [`super::storage::Storage`]. Rows are stored in turn, and the ring starts over behind the last.
pub trait Observations<O: ObsElement>: Debug + Send + Sync + Sized {
    /// For `capacity` transitions whose observations have `obs_dim` elements.
    ///
    /// # Errors
    /// If the memory is not there.
    fn new(capacity: usize, obs_dim: usize) -> Result<Self, RloxError>;

    /// Stores both observations of the transition of `row`, whose turn it is.
    fn push(&mut self, row: usize, obs: &[O], next_obs: &[O]);

    /// Stores those of many transitions, `[n * obs_dim]`, the first of them in `row`.
    fn push_batch(&mut self, row: usize, obs: &[O], next_obs: &[O]);

    /// The observation of a row.
    fn obs(&self, row: usize) -> &[O];

    /// What followed it.
    fn next_obs(&self, row: usize) -> &[O];

    /// Copies both of many rows, each to `[rows.len() * obs_dim]`.
    fn gather(&self, rows: &[usize], obs: &mut [O], next_obs: &mut [O]);
}
