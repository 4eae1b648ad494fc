//! The arrays of a sample.
#![allow(
    unsafe_code,
    reason = "the table of borrows costs more than a small sample does"
)]

use std::slice;

use numpy::{Ix1, Ix2, IxDyn};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyWeakrefReference};
use rlox_core::buffer::Columns;

use crate::arrays::{Hold, Number, made, writable_parts};
use crate::names::names;
use crate::recycled::Recycled;

/// The columns of a sample; those of weights and indices only where rows are drawn by priority.
pub(crate) struct Arrays {
    pub(super) shape: Shape,
    pub(super) obs: Py<PyAny>,
    pub(super) next_obs: Py<PyAny>,
    pub(super) action: Py<PyAny>,
    pub(super) reward: Py<PyAny>,
    pub(super) terminated: Py<PyAny>,
    pub(super) truncated: Py<PyAny>,
    pub(super) weighted: Option<Weighted>,
    /// Weak references to them, if they are kept.
    pub(super) watched: Vec<Py<PyWeakrefReference>>,
}

/// Arrays of earlier samples.
pub(crate) struct RecycledSamples {
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
    ) -> PyResult<Arrays> {
        let [n, obs_dim, act_dim] = shape;
        let mut obs = || array(self.obs.take::<O, Ix2, 2>(py, [n, obs_dim]));
        let (obs, next_obs) = (obs()?, obs()?);
        let mut flags = || array(self.flags.take::<bool, Ix1, 1>(py, [n]));
        Ok(Arrays {
            shape,
            obs,
            next_obs,
            action: array(self.action.take::<f32, Ix2, 2>(py, [n, act_dim]))?,
            reward: array(self.reward.take::<f32, Ix1, 1>(py, [n]))?,
            terminated: flags()?,
            truncated: flags()?,
            weighted: match WEIGHTED {
                true => Some(Weighted {
                    weights: array(self.weights.take::<f32, Ix1, 1>(py, [n]))?,
                    indices: array(self.indices.take::<i64, Ix1, 1>(py, [n]))?,
                }),
                false => None,
            },
            watched: Vec::new(),
        })
    }
}

/// An array as it is kept: who has it may assign another shape to it, as of frames.
fn array<T>(made: PyResult<Bound<'_, T>>) -> PyResult<Py<PyAny>> {
    made.map(|array| array.into_any().unbind())
}

/// The columns of rows that are drawn by priority.
pub(super) struct Weighted {
    pub(super) weights: Py<PyAny>,
    pub(super) indices: Py<PyAny>,
}

/// Batch size, dimension of an observation, dimension of an action.
pub(super) type Shape = [usize; 3];

impl Arrays {
    /// Enters them into the table of what calls work with; an error where somebody else does.
    pub(super) fn enter<'py, O: Number>(&self, py: Python<'py>, hold: &Hold<'py>) -> PyResult<()> {
        hold.enter::<O, IxDyn>("obs", self.obs.bind(py), None, true)?;
        hold.enter::<O, IxDyn>("next_obs", self.next_obs.bind(py), None, true)?;
        hold.enter::<f32, IxDyn>("action", self.action.bind(py), None, true)?;
        hold.enter::<f32, IxDyn>("reward", self.reward.bind(py), None, true)?;
        hold.enter::<bool, IxDyn>("terminated", self.terminated.bind(py), None, true)?;
        hold.enter::<bool, IxDyn>("truncated", self.truncated.bind(py), None, true)?;
        if let Some(Weighted { weights, indices }) = &self.weighted {
            hold.enter::<f32, IxDyn>("weights", weights.bind(py), None, true)?;
            hold.enter::<i64, IxDyn>("indices", indices.bind(py), None, true)?;
        }
        Ok(())
    }

    /// What a sample is written to; None if one of them was marked read-only, to keep what is in it, or
    /// made an array of other elements.
    pub(super) fn columns<O: Number>(&self, py: Python<'_>) -> Option<Columns<'_, O>> {
        let [n, obs_dim, act_dim] = self.shape;
        // SAFETY: each array is asked for once a sample: new and recycled ones nobody else holds, and
        // kept ones were taken out, so that no other call of the core writes them. A thread of Python's
        // that reads them while the interpreter is released finds old and new values mixed, as the
        // docstring warns.
        unsafe {
            Some(Columns {
                obs: written(&self.obs, py, n * obs_dim)?,
                next_obs: written(&self.next_obs, py, n * obs_dim)?,
                action: written(&self.action, py, n * act_dim)?,
                reward: written(&self.reward, py, n)?,
                terminated: written_flags(&self.terminated, py, n)?,
                truncated: written_flags(&self.truncated, py, n)?,
                weights: match &self.weighted {
                    Some(Weighted { weights, .. }) => written(weights, py, n)?,
                    None => &mut [],
                },
                indices: match &self.weighted {
                    Some(Weighted { indices, .. }) => written(indices, py, n)?,
                    None => &mut [],
                },
            })
        }
    }

    /// With weak references to each, so that NumPy does not resize them while they are written to.
    pub(super) fn watched(mut self, py: Python<'_>) -> PyResult<Self> {
        let weighted = self.weighted.iter().flat_map(|w| [&w.weights, &w.indices]);
        let watched = [
            &self.obs,
            &self.next_obs,
            &self.action,
            &self.reward,
            &self.terminated,
            &self.truncated,
        ]
        .into_iter()
        .chain(weighted)
        .map(|array| Ok(PyWeakrefReference::new(array.bind(py))?.unbind()))
        .collect::<PyResult<_>>()?;
        self.watched = watched;
        Ok(self)
    }

    /// The sample as its caller gets it.
    pub(super) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (dict, names) = (made::dict(py)?, names(py));
        dict.set_item(&names.obs, &self.obs)?;
        dict.set_item(&names.next_obs, &self.next_obs)?;
        dict.set_item(&names.action, &self.action)?;
        dict.set_item(&names.reward, &self.reward)?;
        dict.set_item(&names.terminated, &self.terminated)?;
        dict.set_item(&names.truncated, &self.truncated)?;
        if let Some(Weighted { weights, indices }) = &self.weighted {
            dict.set_item(&names.weights, weights)?;
            dict.set_item(&names.indices, indices)?;
        }
        Ok(dict)
    }
}

/// What a column of a sample is written to, if it is `len` elements of `T`.
///
/// # Safety
/// Nobody of the core's has a slice of the same memory.
#[allow(
    clippy::mut_from_ref,
    reason = "an array's elements are not the reference to it"
)]
unsafe fn written<'a, T: Number>(
    array: &'a Py<PyAny>,
    py: Python<'_>,
    len: usize,
) -> Option<&'a mut [T]> {
    let (data, len) = writable_parts::<T>(array.bind(py), len)?;
    // SAFETY: so many elements lie there; the rest is the caller's.
    Some(unsafe { slice::from_raw_parts_mut(data, len) })
}

/// The same of bools, all of them false: who had the array may have made it hold any bytes.
///
/// # Safety
/// As [`written`].
#[allow(clippy::mut_from_ref, reason = "as above")]
unsafe fn written_flags<'a>(
    array: &'a Py<PyAny>,
    py: Python<'_>,
    len: usize,
) -> Option<&'a mut [bool]> {
    let (data, len) = writable_parts::<bool>(array.bind(py), len)?;
    // SAFETY: as there; what was in it is not read.
    unsafe {
        data.write_bytes(0, len);
        Some(slice::from_raw_parts_mut(data, len))
    }
}
