//! Samples as dictionaries of arrays: P20's seam, and P11's around it.
//!
//! The arrays are new ones, earlier ones that nobody holds, or those that the buffer keeps for callers
//! who want no copy.

use std::sync::{Mutex, PoisonError};

use numpy::{
    Element, Ix1, Ix2, IxDyn, PyArray, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods,
    PyUntypedArrayMethods, ndarray::Dimension,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::RloxError;
use rlox_core::buffer::{Columns, ObsElement, Replay};
use rlox_core::switchboard::{P11, P20};

use super::gil::{Gil, Held, Released};
use super::lock;
use crate::arrays::is_writable;
use crate::crossing::Site;
use crate::errors::to_py;
use crate::recycled::{Recycled, unless_taken};

/// The arrays of one batch size that a buffer writes its samples into, over and over. They are taken
/// out while they are written: what Python collects meanwhile may have a finaliser that samples.
pub(crate) type Kept = Mutex<Option<Arrays>>;

/// The columns of a sample; those of weights and indices only where rows are drawn by priority.
pub(crate) struct Arrays {
    shape: Shape,
    obs: Py<PyAny>,
    next_obs: Py<PyAny>,
    action: Py<PyArray2<f32>>,
    reward: Py<PyArray1<f32>>,
    terminated: Py<PyArray1<bool>>,
    truncated: Py<PyArray1<bool>>,
    weighted: Option<Weighted>,
}

/// Where a sample's arrays come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The same ones at every call.
    Kept(&'a Kept),
    /// Those that nobody holds.
    Recycled(&'a Mutex<RecycledSamples>),
}

/// What a buffer gives samples in.
pub(crate) struct Memory {
    kept: Kept,
    recycled: Mutex<RecycledSamples>,
}

impl Memory {
    /// None yet, and never more than `room` arrays of a kind.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            kept: Kept::default(),
            recycled: Mutex::new(RecycledSamples::new(room)),
        }
    }

    pub(crate) fn source(&self, copy: bool) -> Source<'_> {
        if copy {
            Source::Recycled(&self.recycled)
        } else {
            Source::Kept(&self.kept)
        }
    }
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
    fn new(room: usize) -> Self {
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

    fn take<O: Element, const WEIGHTED: bool>(&mut self, py: Python<'_>, shape: Shape) -> Arrays {
        let [n, obs_dim, act_dim] = shape;
        let mut obs = || {
            self.obs
                .take::<O, Ix2, 2>(py, [n, obs_dim])
                .into_any()
                .unbind()
        };
        let mut flags = || self.flags.take::<bool, Ix1, 1>(py, [n]).unbind();
        Arrays {
            shape,
            obs: obs(),
            next_obs: obs(),
            action: self.action.take(py, [n, act_dim]).unbind(),
            reward: self.reward.take(py, [n]).unbind(),
            terminated: flags(),
            truncated: flags(),
            weighted: WEIGHTED.then(|| {
                let weights = self.weights.take(py, [n]).unbind();
                (weights, self.indices.take(py, [n]).unbind())
            }),
        }
    }
}

/// Weights and indices.
type Weighted = (Py<PyArray1<f32>>, Py<PyArray1<i64>>);

/// Batch size, dimension of an observation, dimension of an action.
type Shape = [usize; 3];

/// How a sample gets into arrays.
pub(crate) trait Sampling {
    /// A sample in arrays that are its caller's.
    fn owned<'py, G: Gil, O: ObsElement + Element, B: Replay<O> + Send, const WEIGHTED: bool>(
        py: Python<'py>,
        buffer: &Mutex<B>,
        recycled: &Mutex<RecycledSamples>,
        shape: Shape,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>>;

    /// Draws into `columns`.
    fn draw<O: ObsElement, B: Replay<O>>(
        buffer: &mut B,
        seed: Option<u64>,
        columns: &mut Columns<'_, O>,
    ) -> Result<(), RloxError>;
}

/// Before: row by row into a batch of the core's, whose columns are then handed over or copied.
pub(crate) struct ByBatch;

/// After: column by column straight into the arrays.
pub(crate) struct IntoArrays;

impl Sampling for ByBatch {
    fn owned<'py, G: Gil, O: ObsElement + Element, B: Replay<O> + Send, const WEIGHTED: bool>(
        py: Python<'py>,
        buffer: &Mutex<B>,
        _recycled: &Mutex<RecycledSamples>,
        shape: Shape,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let [batch_size, obs_dim, act_dim] = shape;
        let mut batch = G::run(py, || {
            buffer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .sample(batch_size, seed)
        })
        .map_err(to_py)?;
        let rows = |column| PyArray1::<O>::from_vec(py, column).reshape([batch_size, obs_dim]);
        let action = PyArray1::from_vec(py, B::export(&mut batch.action));
        let sampled = Arrays {
            shape,
            obs: rows(B::export(&mut batch.obs))?.into_any().unbind(),
            next_obs: rows(B::export(&mut batch.next_obs))?.into_any().unbind(),
            action: action.reshape([batch_size, act_dim])?.unbind(),
            reward: PyArray1::from_vec(py, B::export(&mut batch.reward)).unbind(),
            terminated: PyArray1::from_vec(py, B::export(&mut batch.terminated)).unbind(),
            truncated: PyArray1::from_vec(py, B::export(&mut batch.truncated)).unbind(),
            weighted: WEIGHTED.then(|| {
                let weights = PyArray1::from_vec(py, B::export(&mut batch.weights));
                let indices = PyArray1::from_vec(py, B::export(&mut batch.indices));
                (weights.unbind(), indices.unbind())
            }),
        };
        lock(py, buffer).give_back(batch);
        sampled.dict(py)
    }

    fn draw<O: ObsElement, B: Replay<O>>(
        buffer: &mut B,
        seed: Option<u64>,
        columns: &mut Columns<'_, O>,
    ) -> Result<(), RloxError> {
        let batch = buffer.sample(columns.reward.len(), seed)?;
        columns.copy_from(&batch);
        buffer.give_back(batch);
        Ok(())
    }
}

impl Sampling for IntoArrays {
    fn owned<'py, G: Gil, O: ObsElement + Element, B: Replay<O> + Send, const WEIGHTED: bool>(
        py: Python<'py>,
        buffer: &Mutex<B>,
        recycled: &Mutex<RecycledSamples>,
        shape: Shape,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let none = || RecycledSamples::new(0);
        let arrays = unless_taken(recycled, none, |recycled| {
            recycled.take::<O, WEIGHTED>(py, shape)
        });
        arrays.fill::<G, Self, O, B>(py, buffer, seed)?;
        arrays.dict(py)
    }

    fn draw<O: ObsElement, B: Replay<O>>(
        buffer: &mut B,
        seed: Option<u64>,
        columns: &mut Columns<'_, O>,
    ) -> Result<(), RloxError> {
        buffer.sample_into(seed, columns)
    }
}

/// A sample of `batch_size`.
pub(crate) fn sample<'py, O: ObsElement + Element, B: Replay<O> + Send, const WEIGHTED: bool>(
    py: Python<'py>,
    buffer: &Mutex<B>,
    source: Source<'_>,
    site: &'static Site,
    batch_size: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let how = match (P11, P20) {
        (false, false) => sample_under::<Held, ByBatch, O, B, WEIGHTED>,
        (false, true) => sample_under::<Held, IntoArrays, O, B, WEIGHTED>,
        (true, false) => sample_under::<Released, ByBatch, O, B, WEIGHTED>,
        (true, true) => sample_under::<Released, IntoArrays, O, B, WEIGHTED>,
    };
    how(py, buffer, source, site, batch_size, seed)
}

/// The same, whatever the build's choices for P11 and P20 are.
pub(crate) fn sample_under<
    'py,
    G: Gil,
    S: Sampling,
    O: ObsElement + Element,
    B: Replay<O> + Send,
    const WEIGHTED: bool,
>(
    py: Python<'py>,
    buffer: &Mutex<B>,
    source: Source<'_>,
    site: &'static Site,
    batch_size: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut crossing = site.enter(0);
    let shape @ [_, obs_dim, act_dim] = {
        let buffer = lock(py, buffer);
        let storage = buffer.storage();
        storage.check_sample(batch_size).map_err(to_py)?;
        [batch_size, storage.obs_dim(), storage.act_dim()]
    };
    let row = 2 * obs_dim * size_of::<O>() + 4 * act_dim + 6 + if WEIGHTED { 12 } else { 0 };
    crossing.add_bytes(batch_size * row);
    let kept = match source {
        Source::Kept(kept) => kept,
        Source::Recycled(recycled) => {
            return S::owned::<G, O, B, WEIGHTED>(py, buffer, recycled, shape, seed);
        }
    };
    let taken = lock(py, kept).take();
    let arrays = match taken {
        Some(arrays) if arrays.shape == shape && arrays.can_take::<O>(py) => arrays,
        _ => RecycledSamples::new(0).take::<O, WEIGHTED>(py, shape),
    };
    let sampled = arrays
        .fill::<G, S, O, B>(py, buffer, seed)
        .and_then(|()| arrays.dict(py));
    let others = lock(py, kept).replace(arrays);
    drop(others); // of a call in between; unlocked, since that may run Python
    sampled
}

impl Arrays {
    /// Whether nobody has marked one of them read-only, to keep what is in it, or made it an array of
    /// other elements.
    fn can_take<O: Element>(&self, py: Python<'_>) -> bool {
        let [n, obs_dim, act_dim] = self.shape;
        let weighted = self.weighted.as_ref();
        takes::<O>(py, &self.obs, n * obs_dim)
            && takes::<O>(py, &self.next_obs, n * obs_dim)
            && takes::<f32>(py, self.action.as_any(), n * act_dim)
            && takes::<f32>(py, self.reward.as_any(), n)
            && takes::<bool>(py, self.terminated.as_any(), n)
            && takes::<bool>(py, self.truncated.as_any(), n)
            && weighted.is_none_or(|(weights, indices)| {
                takes::<f32>(py, weights.as_any(), n) && takes::<i64>(py, indices.as_any(), n)
            })
    }

    /// Writes a sample into them.
    fn fill<G: Gil, S: Sampling, O: ObsElement + Element, B: Replay<O> + Send>(
        &self,
        py: Python<'_>,
        buffer: &Mutex<B>,
        seed: Option<u64>,
    ) -> PyResult<()> {
        // Of any shape: who keeps them may have assigned another one to them, as of frames.
        let obs = self.obs.bind(py).cast::<PyArrayDyn<O>>()?;
        let next_obs = self.next_obs.bind(py).cast::<PyArrayDyn<O>>()?;
        let weighted = self.weighted.as_ref();
        let mut columns = Columns {
            obs: written::<O, IxDyn>(obs)?,
            next_obs: written::<O, IxDyn>(next_obs)?,
            action: written::<f32, Ix2>(self.action.bind(py))?,
            reward: written::<f32, Ix1>(self.reward.bind(py))?,
            terminated: written::<bool, Ix1>(self.terminated.bind(py))?,
            truncated: written::<bool, Ix1>(self.truncated.bind(py))?,
            weights: match weighted {
                Some((weights, _)) => written::<f32, Ix1>(weights.bind(py))?,
                None => &mut [],
            },
            indices: match weighted {
                Some((_, indices)) => written::<i64, Ix1>(indices.bind(py))?,
                None => &mut [],
            },
        };
        G::run(py, || {
            let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
            S::draw(&mut *buffer, seed, &mut columns)
        })
        .map_err(to_py)
    }

    /// The sample as its caller gets it.
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "obs"), &self.obs)?;
        dict.set_item(intern!(py, "next_obs"), &self.next_obs)?;
        dict.set_item(intern!(py, "action"), &self.action)?;
        dict.set_item(intern!(py, "reward"), &self.reward)?;
        dict.set_item(intern!(py, "terminated"), &self.terminated)?;
        dict.set_item(intern!(py, "truncated"), &self.truncated)?;
        if let Some((weights, indices)) = &self.weighted {
            dict.set_item(intern!(py, "weights"), weights)?;
            dict.set_item(intern!(py, "indices"), indices)?;
        }
        Ok(dict)
    }
}

/// Whether an array is of `len` elements of `T`, one after the other in whatever shape, and may be
/// written.
fn takes<T: Element>(py: Python<'_>, array: &Py<PyAny>, len: usize) -> bool {
    let array = array.bind(py).cast::<PyArrayDyn<T>>();
    array.is_ok_and(|array| {
        array.len() == len && array.is_c_contiguous() && is_writable(array.as_untyped())
    })
}

/// What a column of a sample is written to.
#[allow(
    unsafe_code,
    clippy::mut_from_ref,
    reason = "the table of borrows costs more than a small sample does"
)]
fn written<'a, T: Element, D: Dimension>(
    array: &'a Bound<'_, PyArray<T, D>>,
) -> PyResult<&'a mut [T]> {
    // SAFETY: each array is asked for once a sample, and has the elements that it was made with: new
    // and recycled ones nobody else holds, and kept ones were looked at. No other call of the core
    // writes these, since they are taken out. A thread of Python's that reads them while the
    // interpreter is released finds old and new values mixed, as the docstring warns.
    Ok(unsafe { array.as_slice_mut() }?)
}
