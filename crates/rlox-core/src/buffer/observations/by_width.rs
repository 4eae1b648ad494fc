//! P24's baseline, [`Twice`], and [`ByWidth`], which ships: wide observations are stored once, narrow ones
//! twice.

use super::{ByIndex, Observations};
use crate::RloxError;
use crate::buffer::BufferWiring;
use crate::buffer::pages::zeroed;
use crate::buffer::storage::{ObsElement, gather, put};

/// The size in bytes from which on an observation is stored once. Writing a smaller one twice is faster
/// than comparing it with the one that is stored already.
pub const WIDE: usize = 256;

/// The faster form for the width of the observations.
#[derive(Debug)]
pub enum ByWidth<O> {
    /// For observations of less than [`WIDE`] bytes.
    Twice(Twice<O>),
    /// For observations of [`WIDE`] bytes or more.
    Once(ByIndex<O>),
}

/// Evaluates the same expression for the form that `$self` has.
macro_rules! either {
    ($self:expr, $inner:ident => $value:expr) => {
        match $self {
            Self::Twice($inner) => $value,
            Self::Once($inner) => $value,
        }
    };
}

impl<O: ObsElement> Observations<O> for ByWidth<O> {
    fn new<W: BufferWiring>(capacity: usize, obs_dim: usize) -> Result<Self, RloxError> {
        if obs_dim.saturating_mul(size_of::<O>()) < WIDE {
            Twice::new::<W>(capacity, obs_dim).map(Self::Twice)
        } else {
            ByIndex::new::<W>(capacity, obs_dim).map(Self::Once)
        }
    }

    fn push(&mut self, row: usize, obs: &[O], next_obs: &[O]) {
        either!(self, rows => rows.push(row, obs, next_obs));
    }

    fn push_batch(&mut self, row: usize, obs: &[O], next_obs: &[O]) {
        either!(self, rows => rows.push_batch(row, obs, next_obs));
    }

    fn obs(&self, row: usize) -> &[O] {
        either!(self, rows => rows.obs(row))
    }

    fn next_obs(&self, row: usize) -> &[O] {
        either!(self, rows => rows.next_obs(row))
    }

    fn gather(&self, rows: &[usize], obs: &mut [O], next_obs: &mut [O]) {
        either!(self, kept => kept.gather(rows, obs, next_obs));
    }
}

/// Stores both observations of each transition, in two columns. So most observations are stored twice: as
/// the next observation of one transition and as the observation of the following one.
#[derive(Debug)]
pub struct Twice<O> {
    obs_dim: usize,
    obs: Vec<O>,
    next_obs: Vec<O>,
}

impl<O: ObsElement> Observations<O> for Twice<O> {
    fn new<W: BufferWiring>(capacity: usize, obs_dim: usize) -> Result<Self, RloxError> {
        Ok(Self {
            obs_dim,
            obs: zeroed::<W, _>(capacity, obs_dim)?,
            next_obs: zeroed::<W, _>(capacity, obs_dim)?,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wiring::Shipped;

    fn is_stored_once<O: ObsElement>(obs_dim: usize) -> bool {
        matches!(
            ByWidth::<O>::new::<Shipped>(3, obs_dim).unwrap(),
            ByWidth::Once(_)
        )
    }

    #[test]
    fn width_is_of_bytes() {
        assert!(!is_stored_once::<f32>(63) && is_stored_once::<f32>(64));
        assert!(!is_stored_once::<u8>(255) && is_stored_once::<u8>(256));
    }
}
