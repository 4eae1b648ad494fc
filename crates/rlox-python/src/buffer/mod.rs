//! The replay buffers' classes, and what they share.
//!
//! Each buffer stands behind a mutex of its own and the classes are frozen, so that a thread that
//! pushes while another samples with the interpreter released waits for it, instead of being told
//! "Already borrowed". Nothing of Python's is called while the mutex is held, so it cannot deadlock
//! with the interpreter's lock.

pub(crate) mod gil;
pub(crate) mod prioritized;
pub(crate) mod replay;

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{Element, Ix1, Ix2, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use rlox_core::RloxError;
use rlox_core::buffer::{Experience, ExperienceBatch, ObsElement, Replay};
use rlox_core::switchboard::P11;

use crate::arrays::{any_shape, input};
use crate::crossing::Site;
use crate::errors::to_py;
use gil::{Gil, Held, Released};

/// A buffer with observations of either type.
pub(crate) enum ByObs<F, U> {
    F32(Mutex<F>),
    U8(Mutex<U>),
}

/// Runs the same code on whichever buffer `$either` holds.
macro_rules! each {
    ($either:expr, $buffer:ident => $body:expr) => {
        match &$either {
            $crate::buffer::ByObs::F32($buffer) => $body,
            $crate::buffer::ByObs::U8($buffer) => $body,
        }
    };
}
pub(crate) use each;

/// Whether observations are bytes, from the name of their dtype.
pub(crate) fn obs_are_bytes(obs_dtype: &str) -> PyResult<bool> {
    match obs_dtype {
        "float32" => Ok(false),
        "uint8" => Ok(true),
        _ => Err(PyValueError::new_err(format!(
            "obs_dtype: is {obs_dtype:?}, expected \"float32\" or \"uint8\""
        ))),
    }
}

/// The buffer, for a thread that holds the interpreter and lets it go while it waits.
pub(crate) fn lock<'a, B>(py: Python<'_>, buffer: &'a Mutex<B>) -> MutexGuard<'a, B> {
    // Every method leaves the buffer whole on an error, so a poisoned one is usable.
    buffer
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner)
}

/// The arguments of `push`.
pub(crate) struct Transition<'a, 'py> {
    pub(crate) obs: &'a Bound<'py, PyAny>,
    pub(crate) next_obs: &'a Bound<'py, PyAny>,
    pub(crate) action: &'a Bound<'py, PyAny>,
    pub(crate) reward: f32,
    pub(crate) terminated: bool,
    pub(crate) truncated: bool,
}

/// `intake` is a twin of P3's.
pub(crate) fn push<O: ObsElement + Element, B: Replay<O>>(
    buffer: &Mutex<B>,
    site: &'static Site,
    transition: &Transition<'_, '_>,
    intake: impl FnOnce(&mut B, Experience<'_, O>) -> Result<(), RloxError>,
) -> PyResult<()> {
    let obs = any_shape::<O, Ix1>("obs", transition.obs)?;
    let next_obs = any_shape::<O, Ix1>("next_obs", transition.next_obs)?;
    let action = any_shape::<f32, Ix1>("action", transition.action)?;
    let experience = Experience {
        obs: obs.as_slice()?,
        next_obs: next_obs.as_slice()?,
        action: action.as_slice()?,
        reward: transition.reward,
        terminated: transition.terminated,
        truncated: transition.truncated,
    };
    let _crossing =
        site.enter(2 * size_of_val(experience.obs) + size_of_val(experience.action) + 6);
    intake(&mut *lock(transition.obs.py(), buffer), experience).map_err(to_py)
}

/// The arguments of `push_batch`, in its order.
pub(crate) type Columns<'a, 'py> = [&'a Bound<'py, PyAny>; 6];

pub(crate) fn push_batch<O: ObsElement + Element>(
    buffer: &Mutex<impl Replay<O>>,
    site: &'static Site,
    [obs, next_obs, action, reward, terminated, truncated]: Columns<'_, '_>,
) -> PyResult<()> {
    let py = obs.py();
    let (obs_dim, act_dim) = {
        let buffer = lock(py, buffer);
        (buffer.storage().obs_dim(), buffer.storage().act_dim())
    };
    let obs = any_shape::<O, Ix2>("obs", obs)?;
    let n = obs.shape()[0];
    if obs.shape()[1] != obs_dim {
        return Err(PyValueError::new_err(format!(
            "obs: has shape ({n}, {}), expected (n, {obs_dim})",
            obs.shape()[1]
        )));
    }
    let next_obs = input::<O, Ix2>("next_obs", next_obs, &[n, obs_dim])?;
    let action = input::<f32, Ix2>("action", action, &[n, act_dim])?;
    let reward = input::<f32, Ix1>("reward", reward, &[n])?;
    let terminated = input::<bool, Ix1>("terminated", terminated, &[n])?;
    let truncated = input::<bool, Ix1>("truncated", truncated, &[n])?;
    let batch = ExperienceBatch {
        obs: obs.as_slice()?,
        next_obs: next_obs.as_slice()?,
        action: action.as_slice()?,
        reward: reward.as_slice()?,
        terminated: terminated.as_slice()?,
        truncated: truncated.as_slice()?,
    };
    let _crossing = site.enter(2 * size_of_val(batch.obs) + size_of_val(batch.action) + 6 * n);
    lock(py, buffer).push_batch(&batch).map_err(to_py)
}

pub(crate) fn sample<'py, O: ObsElement + Element, B: Replay<O> + Send>(
    py: Python<'py>,
    buffer: &Mutex<B>,
    site: &'static Site,
    batch_size: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    if P11 {
        sample_under::<Released, _, _>(py, buffer, site, batch_size, seed)
    } else {
        sample_under::<Held, _, _>(py, buffer, site, batch_size, seed)
    }
}

/// The same, whatever the build's choice for P11 is.
pub(crate) fn sample_under<'py, G: Gil, O: ObsElement + Element, B: Replay<O> + Send>(
    py: Python<'py>,
    buffer: &Mutex<B>,
    site: &'static Site,
    batch_size: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut crossing = site.enter(0);
    let mut batch = G::run(py, || {
        buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sample(batch_size, seed)
    })
    .map_err(to_py)?;
    crossing.add_bytes(
        2 * size_of_val(&batch.obs[..])
            + size_of_val(&batch.action[..])
            + 6 * batch_size
            + size_of_val(&batch.weights[..])
            + size_of_val(&batch.indices[..]),
    );

    let sampled = PyDict::new(py);
    let rows = |column: &mut Vec<O>| {
        let dim = column.len() / batch_size;
        PyArray1::from_vec(py, B::export(column)).reshape([batch_size, dim])
    };
    sampled.set_item(pyo3::intern!(py, "obs"), rows(&mut batch.obs)?)?;
    sampled.set_item(pyo3::intern!(py, "next_obs"), rows(&mut batch.next_obs)?)?;
    let act_dim = batch.action.len() / batch_size;
    sampled.set_item(
        pyo3::intern!(py, "action"),
        PyArray1::from_vec(py, B::export(&mut batch.action)).reshape([batch_size, act_dim])?,
    )?;
    sampled.set_item(
        pyo3::intern!(py, "reward"),
        PyArray1::from_vec(py, B::export(&mut batch.reward)),
    )?;
    sampled.set_item(
        pyo3::intern!(py, "terminated"),
        PyArray1::from_vec(py, B::export(&mut batch.terminated)),
    )?;
    sampled.set_item(
        pyo3::intern!(py, "truncated"),
        PyArray1::from_vec(py, B::export(&mut batch.truncated)),
    )?;
    if !batch.indices.is_empty() {
        sampled.set_item(
            pyo3::intern!(py, "weights"),
            PyArray1::from_vec(py, B::export(&mut batch.weights)),
        )?;
        sampled.set_item(
            pyo3::intern!(py, "indices"),
            PyArray1::from_vec(py, B::export(&mut batch.indices)),
        )?;
    }
    lock(py, buffer).give_back(batch);
    Ok(sampled)
}
