//! The arrays of a sample.

use std::borrow::Borrow;

use numpy::{Ix1, Ix2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::buffer::Columns;

use crate::arrays::{Detaching, Kept, Number, Own, Recycled, Refilled, made};
use crate::names::names;

/// The columns of a sample; those of weights and indices only where rows are drawn by priority.
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

/// The columns of rows that are drawn by priority.
pub(crate) struct Weighted<A> {
    pub(super) weights: A,
    pub(super) indices: A,
}

/// Batch size, dimension of an observation, dimension of an action.
pub(super) type Shape = [usize; 3];

/// Arrays of earlier samples.
pub struct RecycledSamples {
    obs: Recycled,
    action: Recycled,
    reward: Recycled,
    flags: Recycled,
    weights: Recycled,
    indices: Recycled,
}

impl RecycledSamples {
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
    /// The arrays, which are their caller's from here on.
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

    /// The arrays, to be written to again when their caller has them.
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
    /// What a sample is written to; None if one of them was marked read-only, to keep what is in it, was
    /// made an array of other elements, or is one that somebody works with.
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
    /// The sample as its caller gets it.
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
