//! The classes of the replay buffers, and what they share.
//!
//! Each buffer has a lock of its own, and the classes are frozen. So if a thread pushes while another one
//! samples with the GIL released, the push waits until the sample is drawn. Without the lock, PyO3's own
//! check would raise "Already borrowed". No Python code runs while the lock is held, so it cannot deadlock
//! with the GIL. The scopes of `arrays` take the lock before they check arrays, since waiting for the lock
//! releases the GIL, and other threads may then change the arrays.

mod columns;
pub(crate) mod gil;
pub(crate) mod prioritized;
pub(crate) mod replay;
pub(crate) mod sampling;

use numpy::{Ix1, Ix2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::RloxError;
use rlox_core::buffer::{Experience, ExperienceBatch, ObsElement, Replay};

use crate::arrays::{Argument, Borrows, Looks, Number, reading};
use crate::crossing::Site;
use crate::errors::to_py;
use crate::lock::Lock;

/// A buffer whose observations are float32 or uint8.
pub(crate) enum ByObs<F, U> {
    F32(Lock<F>),
    U8(Lock<U>),
}

/// Runs the same code for the buffer of either type that `$either` has.
macro_rules! each {
    ($either:expr, $buffer:ident => $body:expr) => {
        match &$either {
            $crate::buffer::ByObs::F32($buffer) => $body,
            $crate::buffer::ByObs::U8($buffer) => $body,
        }
    };
}
pub(crate) use each;

/// Whether the dtype with this name is uint8; ValueError if it is neither that nor float32.
pub(crate) fn obs_are_bytes(obs_dtype: &str) -> PyResult<bool> {
    match obs_dtype {
        "float32" => Ok(false),
        "uint8" => Ok(true),
        _ => Err(PyValueError::new_err(format!(
            "obs_dtype: is {obs_dtype:?}, expected \"float32\" or \"uint8\""
        ))),
    }
}

/// The arguments of the Python method `push`.
#[allow(missing_docs, reason = "`ReplayBuffer.push` says what each is")]
pub struct PushArguments<'a, 'py> {
    pub obs: &'a Bound<'py, PyAny>,
    pub next_obs: &'a Bound<'py, PyAny>,
    pub action: &'a Bound<'py, PyAny>,
    pub reward: f32,
    pub terminated: bool,
    pub truncated: bool,
}

/// Stores one transition. `intake` is a form of P3, `borrows` one of P23.
pub fn push<O: ObsElement + Number, B: Replay<O> + Send>(
    buffer: &Lock<B>,
    site: &'static Site,
    transition: &PushArguments<'_, '_>,
    borrows: Borrows,
    intake: impl FnOnce(&mut B, Experience<'_, O>) -> Result<(), RloxError> + Send,
) -> PyResult<()> {
    let mut crossing = site.enter(6);
    let py = transition.obs.py();
    let obs = Argument::new("obs", transition.obs);
    let next_obs = Argument::new("next_obs", transition.next_obs);
    let action = Argument::new("action", transition.action);
    let (reward, terminated, truncated) = (
        transition.reward,
        transition.terminated,
        transition.truncated,
    );
    reading(py, buffer, borrows, |buffer, look| {
        let obs = look.read::<O, Ix1>(obs, None)?;
        let next_obs = look.read::<O, Ix1>(next_obs, None)?;
        let action = look.read::<f32, Ix1>(action, None)?;
        let experience = Experience {
            obs: &obs,
            next_obs: &next_obs,
            action: &action,
            reward,
            terminated,
            truncated,
        };
        crossing.add_bytes(2 * size_of_val(experience.obs) + size_of_val(experience.action));
        intake(buffer, experience).map_err(to_py)
    })
}

/// The arguments of the Python method `push_batch`, in its order.
pub(crate) type BatchArguments<'a, 'py> = [&'a Bound<'py, PyAny>; 6];

/// Stores many transitions. `borrows` is a form of P23.
pub fn push_batch<O: ObsElement + Number>(
    buffer: &Lock<impl Replay<O> + Send>,
    site: &'static Site,
    borrows: Borrows,
    [obs, next_obs, action, reward, terminated, truncated]: BatchArguments<'_, '_>,
) -> PyResult<()> {
    let mut crossing = site.enter(0);
    let py = obs.py();
    let obs = Argument::new("obs", obs);
    let next_obs = Argument::new("next_obs", next_obs);
    let action = Argument::new("action", action);
    let reward = Argument::new("reward", reward);
    let terminated = Argument::new("terminated", terminated);
    let truncated = Argument::new("truncated", truncated);
    reading(py, buffer, borrows, |buffer, look| {
        let (obs_dim, act_dim) = (buffer.storage().obs_dim(), buffer.storage().act_dim());
        let obs = look.read::<O, Ix2>(obs, None)?;
        let n = obs.shape()[0];
        if obs.shape()[1] != obs_dim {
            return Err(PyValueError::new_err(format!(
                "obs: has shape ({n}, {}), expected (n, {obs_dim})",
                obs.shape()[1]
            )));
        }
        let next_obs = look.read::<O, Ix2>(next_obs, Some(&[n, obs_dim]))?;
        let action = look.read::<f32, Ix2>(action, Some(&[n, act_dim]))?;
        let reward = look.read::<f32, Ix1>(reward, Some(&[n]))?;
        let terminated = look.read::<bool, Ix1>(terminated, Some(&[n]))?;
        let truncated = look.read::<bool, Ix1>(truncated, Some(&[n]))?;
        let batch = ExperienceBatch {
            obs: &obs,
            next_obs: &next_obs,
            action: &action,
            reward: &reward,
            terminated: terminated.flags()?,
            truncated: truncated.flags()?,
        };
        crossing.add_bytes(2 * size_of_val(batch.obs) + size_of_val(batch.action) + 6 * n);
        buffer.append(&batch).map_err(to_py)
    })
}
