//! Samples as dictionaries of arrays: P20's seam, with P11's around it.
//!
//! With `copy=True`, the arrays are new, or those of an earlier sample that nobody holds any more. With
//! `copy=False`, they are kept by the buffer, and each sample overwrites them.

use std::sync::Mutex;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::RloxError;
use rlox_core::buffer::{Columns, ObsElement, Replay};
use rlox_core::switchboard::{P11, P20};

use super::columns::{Arrays, RecycledSamples, Shape, Weighted};
use super::gil::{Gil, Held, Released};
use crate::arrays::{Item, Kept, Number, Refilled, detaching, made, unless_taken};
use crate::crossing::Site;
use crate::errors::to_py;
use crate::lock::{Lock, briefly};

/// The kept arrays of one batch size. A sample takes them out while it writes to them, since a
/// finaliser that runs meanwhile may sample, too. They are boxed, since taking them out and putting
/// them back moves them some six times a sample.
type KeptSample = Mutex<Option<Box<Arrays<Kept>>>>;

/// Where a sample's arrays come from.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// The kept arrays, the same ones at every call.
    Kept(&'a KeptSample),
    /// New arrays, or earlier ones that nobody holds.
    Recycled(&'a Mutex<RecycledSamples>),
}

/// The arrays of a buffer's samples.
pub struct SampleMemory {
    kept: KeptSample,
    recycled: Mutex<RecycledSamples>,
}

impl SampleMemory {
    /// No arrays yet. At most `room` recycled ones of each kind will be kept.
    pub fn new(room: usize) -> Self {
        Self {
            kept: KeptSample::default(),
            recycled: Mutex::new(RecycledSamples::new(room)),
        }
    }

    /// With `copy`, arrays that the caller may keep; without it, those that the next sample overwrites.
    pub fn source(&self, copy: bool) -> Source<'_> {
        if copy {
            Source::Recycled(&self.recycled)
        } else {
            Source::Kept(&self.kept)
        }
    }
}

/// How a sample gets into arrays: P20's seam.
pub trait Sampling {
    /// A sample in arrays that belong to the caller.
    fn owned<'py, G: Gil, O: ObsElement + Number, B: Replay<O> + Send, const WEIGHTED: bool>(
        py: Python<'py>,
        buffer: &Lock<B>,
        recycled: &Mutex<RecycledSamples>,
        shape: Shape,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>>;

    /// Draws a sample, and writes it to `columns`.
    fn draw<O: ObsElement, B: Replay<O>>(
        buffer: &mut B,
        seed: Option<u64>,
        columns: &mut Columns<'_, O>,
    ) -> Result<(), RloxError>;
}

/// The baseline: the core makes a batch row by row, and its columns become the arrays or are copied to
/// them.
pub struct ByBatch;

/// The optimised form: the core writes column by column to the arrays.
pub struct IntoArrays;

impl Sampling for ByBatch {
    fn owned<'py, G: Gil, O: ObsElement + Number, B: Replay<O> + Send, const WEIGHTED: bool>(
        py: Python<'py>,
        buffer: &Lock<B>,
        _recycled: &Mutex<RecycledSamples>,
        shape: Shape,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let [batch_size, obs_dim, act_dim] = shape;
        let mut batch = detaching(py, buffer, |buffer, scope| {
            G::run(scope, || buffer.sample(batch_size, seed)).map_err(to_py)
        })?;
        let rows = |column: &mut Vec<O>| {
            made::owned(py, B::export(column), [batch_size, obs_dim]).map(Bound::unbind)
        };
        let (obs, next_obs) = (rows(&mut batch.obs)?, rows(&mut batch.next_obs)?);
        fn column<T: Item + 'static, B: Replay<O>, O: ObsElement>(
            py: Python<'_>,
            column: &mut Vec<T>,
        ) -> PyResult<Py<PyAny>> {
            let shape = [column.len()];
            made::owned(py, B::export(column), shape).map(Bound::unbind)
        }
        let sampled = Arrays {
            shape,
            obs,
            next_obs,
            action: made::owned(py, B::export(&mut batch.action), [batch_size, act_dim])?.unbind(),
            reward: column::<_, B, O>(py, &mut batch.reward)?,
            terminated: column::<_, B, O>(py, &mut batch.terminated)?,
            truncated: column::<_, B, O>(py, &mut batch.truncated)?,
            weighted: match WEIGHTED {
                true => Some(Weighted {
                    weights: column::<_, B, O>(py, &mut batch.weights)?,
                    indices: column::<_, B, O>(py, &mut batch.indices)?,
                }),
                false => None,
            },
        };
        buffer.lock(py)?.give_back(batch);
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
    fn owned<'py, G: Gil, O: ObsElement + Number, B: Replay<O> + Send, const WEIGHTED: bool>(
        py: Python<'py>,
        buffer: &Lock<B>,
        recycled: &Mutex<RecycledSamples>,
        shape: Shape,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let none = || RecycledSamples::new(0);
        let mut arrays = unless_taken(recycled, none, |recycled| {
            recycled.take::<O, WEIGHTED>(py, shape)
        })?;
        if !arrays.fill::<G, Self, O, B>(py, buffer, seed)? {
            return Err(changed());
        }
        arrays.give().dict(py)
    }

    fn draw<O: ObsElement, B: Replay<O>>(
        buffer: &mut B,
        seed: Option<u64>,
        columns: &mut Columns<'_, O>,
    ) -> Result<(), RloxError> {
        buffer.sample_into(seed, columns)
    }
}

/// A sample of `batch_size` transitions, by the forms of P11 and P20 that this build uses.
pub(crate) fn sample<'py, O: ObsElement + Number, B: Replay<O> + Send, const WEIGHTED: bool>(
    py: Python<'py>,
    buffer: &Lock<B>,
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

/// A sample by the given forms of P11 and P20.
pub fn sample_under<
    'py,
    G: Gil,
    S: Sampling,
    O: ObsElement + Number,
    B: Replay<O> + Send,
    const WEIGHTED: bool,
>(
    py: Python<'py>,
    buffer: &Lock<B>,
    source: Source<'_>,
    site: &'static Site,
    batch_size: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut crossing = site.enter(0);
    let shape @ [_, obs_dim, act_dim] = {
        let buffer = buffer.lock(py)?;
        let storage = buffer.storage();
        storage.check_sample(batch_size).map_err(to_py)?;
        [batch_size, storage.obs_dim(), storage.act_dim()]
    };
    let row = 2 * obs_dim * size_of::<O>() + 4 * act_dim + 6 + if WEIGHTED { 12 } else { 0 };
    crossing.add_bytes(batch_size.saturating_mul(row));
    let kept = match source {
        Source::Kept(kept) => kept,
        Source::Recycled(recycled) => {
            return S::owned::<G, O, B, WEIGHTED>(py, buffer, recycled, shape, seed);
        }
    };
    let taken = briefly(kept).take();
    let mut arrays = taken.filter(|arrays| arrays.shape == shape);
    // Kept arrays that are in use, or are not what they were, are left to whoever has them, and new
    // ones are made.
    let mut filled = match &mut arrays {
        Some(arrays) => arrays.fill::<G, S, O, B>(py, buffer, seed),
        None => Ok(false),
    };
    if let Ok(false) = filled {
        let mut new = RecycledSamples::new(0)
            .take::<O, WEIGHTED>(py, shape)?
            .keep(py)?;
        filled = new.fill::<G, S, O, B>(py, buffer, seed);
        arrays = Some(Box::new(new));
    }
    let sampled = match (filled, &arrays) {
        (Err(error), _) => Err(error),
        (Ok(true), Some(arrays)) => arrays.dict(py),
        _ => Err(changed()),
    };
    let others = std::mem::replace(&mut *briefly(kept), arrays);
    // Arrays of another call, if it kept some meanwhile. They are dropped after `kept` is unlocked, since
    // dropping them may run Python code.
    drop(others);
    sampled
}

/// All transitions, the oldest first, in new arrays.
pub(crate) fn transitions<'py, O: ObsElement + Number, B: Replay<O> + Send>(
    py: Python<'py>,
    buffer: &Lock<B>,
) -> PyResult<Bound<'py, PyDict>> {
    loop {
        let shape = {
            let buffer = buffer.lock(py)?;
            let storage = buffer.storage();
            [storage.len(), storage.obs_dim(), storage.act_dim()]
        };
        let mut arrays = RecycledSamples::new(0).take::<O, false>(py, shape)?;
        let copied = detaching(py, buffer, |buffer, scope| {
            let storage = buffer.storage();
            if storage.len() != shape[0] {
                return Ok(false); // another thread pushed while the arrays were made
            }
            let mut columns = arrays.columns::<O>(scope).ok_or_else(changed)?;
            storage.copy_into(&mut columns).map_err(to_py)?;
            Ok(true)
        })?;
        if copied {
            return arrays.give().dict(py);
        }
    }
}

/// The error for new arrays that a finaliser has found and changed.
fn changed() -> PyErr {
    PyRuntimeError::new_err("the arrays of a sample were changed while it was drawn")
}

impl<A: Refilled + Send> Arrays<A> {
    /// Writes a sample to the arrays. Returns false, and does nothing, if they cannot be written to as
    /// [`Self::columns`] says.
    fn fill<G: Gil, S: Sampling, O: ObsElement + Number, B: Replay<O> + Send>(
        &mut self,
        py: Python<'_>,
        buffer: &Lock<B>,
        seed: Option<u64>,
    ) -> PyResult<bool> {
        detaching(py, buffer, |buffer, scope| {
            let Some(mut columns) = self.columns::<O>(scope) else {
                return Ok(false);
            };
            let drawn = G::run(scope, || S::draw(buffer, seed, &mut columns));
            drawn.map(|()| true).map_err(to_py)
        })
    }
}
