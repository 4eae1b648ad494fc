//! P24's seam: how the two observations of a transition are stored.

mod by_index;
mod by_width;

pub use by_index::ByIndex;
pub use by_width::{ByWidth, Twice, WIDE};

use std::fmt::Debug;

use super::BufferWiring;
use super::storage::ObsElement;
use crate::RloxError;

/// The observations of a ring of transitions, as [`super::storage::Storage`] needs them. Transitions are
/// stored row after row, and row 0 comes again after the last row.
pub trait Observations<O: ObsElement>: Debug + Send + Sync + Sized {
    /// For `capacity` transitions whose observations have `obs_dim` elements.
    ///
    /// # Errors
    /// If there is no memory.
    fn new<W: BufferWiring>(capacity: usize, obs_dim: usize) -> Result<Self, RloxError>;

    /// Stores both observations of one transition in `row`, the row after the last one stored.
    fn push(&mut self, row: usize, obs: &[O], next_obs: &[O]);

    /// Stores the observations of many transitions, `[n * obs_dim]`, from `row` on.
    fn push_batch(&mut self, row: usize, obs: &[O], next_obs: &[O]);

    /// The observation of the transition in `row`.
    fn obs(&self, row: usize) -> &[O];

    /// The next observation of the transition in `row`.
    fn next_obs(&self, row: usize) -> &[O];

    /// Copies the observations of `rows` to `obs` and their next observations to `next_obs`, each
    /// `[rows.len() * obs_dim]`.
    fn gather(&self, rows: &[usize], obs: &mut [O], next_obs: &mut [O]);
}
