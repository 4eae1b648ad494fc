//! Every observation stored twice: as what was seen, and as what followed the one before.

use super::Observations;
use crate::RloxError;
use crate::buffer::storage::{ObsElement, gather, put, zeroed};

/// Two columns.
#[derive(Debug)]
pub struct Twice<O> {
    obs_dim: usize,
    obs: Vec<O>,
    next_obs: Vec<O>,
}

impl<O: ObsElement> Observations<O> for Twice<O> {
    fn new(capacity: usize, obs_dim: usize) -> Result<Self, RloxError> {
        Ok(Self {
            obs_dim,
            obs: zeroed(capacity, obs_dim)?,
            next_obs: zeroed(capacity, obs_dim)?,
        })
    }

    fn push(&mut self, row: usize, obs: &[O], next_obs: &[O]) {
        let at = row * self.obs_dim..(row + 1) * self.obs_dim;
        self.obs[at.clone()].copy_from_slice(obs);
        self.next_obs[at].copy_from_slice(next_obs);
    }

    fn push_batch(&mut self, row: usize, obs: &[O], next_obs: &[O]) {
        put(&mut self.obs, obs, self.obs_dim, row);
        put(&mut self.next_obs, next_obs, self.obs_dim, row);
    }

    fn obs(&self, row: usize) -> &[O] {
        &self.obs[row * self.obs_dim..(row + 1) * self.obs_dim]
    }

    fn next_obs(&self, row: usize) -> &[O] {
        &self.next_obs[row * self.obs_dim..(row + 1) * self.obs_dim]
    }

    fn gather(&self, rows: &[usize], obs: &mut [O], next_obs: &mut [O]) {
        let rows = rows.iter().copied();
        gather(&self.obs, self.obs_dim, rows.clone(), obs);
        gather(&self.next_obs, self.obs_dim, rows, next_obs);
    }
}
