//! The arrays of a sample: where they come from, the slices of them that a sample is written to, and
//! the dictionary that the caller gets.

use std::borrow::Borrow;

use numpy::{Ix1, Ix2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::buffer::Columns;

use crate::arrays::{Detaching, Kept, Number, Own, Recycled, Refilled, made};
use crate::names::names;

/// An array for each column of a sample.
pub struct Arrays<A> {
    pub(super) shape: Shape,
    pub(super) obs: A,
    pub(super) next_obs: A,
    pub(super) action: A,
    pub(super) reward: A,
    pub(super) terminated: A,
    pub(super) truncated: A,
    pub(super) weighted: Option<Weighted<A>>,
}

/// The columns that only prioritised samples have.
pub(crate) struct Weighted<A> {
    pub(super) weights: A,
    pub(super) indices: A,
}

/// `[batch_size, obs_dim, act_dim]`
pub(super) type Shape = [usize; 3];

/// The arrays of earlier samples, to be given out again when nobody holds them.
pub struct RecycledSamples {
    obs: Recycled,
    action: Recycled,
    reward: Recycled,
    flags: Recycled,
    weights: Recycled,
    indices: Recycled,
}

impl RecycledSamples {
    /// No arrays yet. At most `room` of each kind will be kept.
    pub(super) fn new(room: usize) -> Self {
        let [obs, action, reward, flags, weights, indices] = [(); 6].map(|()| Recycled::new(room));
        Self {
            obs,
            action,
            reward,
            flags,
            weights,
            indices,
        }
    }

    /// Arrays for a sample of this shape, with weights and indices if `WEIGHTED`.
    pub(super) fn take<O: Number, const WEIGHTED: bool>(
        &mut self,
        py: Python<'_>,
        shape: Shape,
    ) -> PyResult<Arrays<Own>> {
        let [n, obs_dim, act_dim] = shape;
        let mut obs = || self.obs.take::<O, Ix2, 2>(py, [n, obs_dim]);
        let (obs, next_obs) = (obs()?, obs()?);
        let mut flags = || self.flags.take::<bool, Ix1, 1>(py, [n]);
        Ok(Arrays {
            shape,
            obs,
            next_obs,
            action: self.action.take::<f32, Ix2, 2>(py, [n, act_dim])?,
            reward: self.reward.take::<f32, Ix1, 1>(py, [n])?,
            terminated: flags()?,
            truncated: flags()?,
            weighted: match WEIGHTED {
                true => Some(Weighted {
                    weights: self.weights.take::<f32, Ix1, 1>(py, [n])?,
                    indices: self.indices.take::<i64, Ix1, 1>(py, [n])?,
                }),
                false => None,
            },
        })
    }
}

impl Arrays<Own> {
    /// The arrays, which belong to the caller of the binding from now on.
    pub(super) fn give(self) -> Arrays<Py<PyAny>> {
        Arrays {
            shape: self.shape,
            obs: self.obs.give(),
            next_obs: self.next_obs.give(),
            action: self.action.give(),
            reward: self.reward.give(),
            terminated: self.terminated.give(),
            truncated: self.truncated.give(),
            weighted: self.weighted.map(|Weighted { weights, indices }| Weighted {
                weights: weights.give(),
                indices: indices.give(),
            }),
        }
    }

    /// The arrays, to be given to a caller and written to again by later samples.
    pub(super) fn keep(self, py: Python<'_>) -> PyResult<Arrays<Kept>> {
        Ok(Arrays {
            shape: self.shape,
            obs: self.obs.keep(py)?,
            next_obs: self.next_obs.keep(py)?,
            action: self.action.keep(py)?,
            reward: self.reward.keep(py)?,
            terminated: self.terminated.keep(py)?,
            truncated: self.truncated.keep(py)?,
            weighted: match self.weighted {
                Some(Weighted { weights, indices }) => Some(Weighted {
                    weights: weights.keep(py)?,
                    indices: indices.keep(py)?,
                }),
                None => None,
            },
        })
    }
}

impl<A: Refilled> Arrays<A> {
    /// The slices that a sample is written to. None if an array was marked read-only, has another dtype
    /// or size by now, or is in use by another call.
    pub(super) fn columns<'x, O: Number>(
        &'x mut self,
        scope: &'x Detaching<'_>,
    ) -> Option<Columns<'x, O>> {
        let [n, obs_dim, act_dim] = self.shape;
        let (weights, indices): (&mut [f32], &mut [i64]) = match &mut self.weighted {
            Some(Weighted { weights, indices }) => {
                (weights.numbers(scope, n)?, indices.numbers(scope, n)?)
            }
            None => (&mut [], &mut []),
        };
        Some(Columns {
            obs: self.obs.numbers(scope, n * obs_dim)?,
            next_obs: self.next_obs.numbers(scope, n * obs_dim)?,
            action: self.action.numbers(scope, n * act_dim)?,
            reward: self.reward.numbers(scope, n)?,
            terminated: self.terminated.flags(scope, n)?,
            truncated: self.truncated.flags(scope, n)?,
            weights,
            indices,
        })
    }
}

impl<A: Borrow<Py<PyAny>>> Arrays<A> {
    /// The sample as a dictionary of its arrays.
    pub(super) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (dict, names) = (made::dict(py)?, names(py));
        dict.set_item(&names.obs, self.obs.borrow())?;
        dict.set_item(&names.next_obs, self.next_obs.borrow())?;
        dict.set_item(&names.action, self.action.borrow())?;
        dict.set_item(&names.reward, self.reward.borrow())?;
        dict.set_item(&names.terminated, self.terminated.borrow())?;
        dict.set_item(&names.truncated, self.truncated.borrow())?;
        if let Some(Weighted { weights, indices }) = &self.weighted {
            dict.set_item(&names.weights, weights.borrow())?;
            dict.set_item(&names.indices, indices.borrow())?;
        }
        Ok(dict)
    }
}
