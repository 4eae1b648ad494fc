//! The built-in environments for Python: NumPy in, NumPy out.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use numpy::{
    Ix1, Ix2, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::RloxError;
use rlox_core::env::builtins;
use rlox_core::env::obs_store::ObsStore;
use rlox_core::env::parallel::Reset;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::env::stepping::Finals;
use rlox_core::switchboard::VecEnv as CoreVecEnv;

use crate::arrays::{Read, any_shape, input, objects, rows, target};
use crate::crossing::{VEC_ENV_RESET, VEC_ENV_STEP};
use crate::errors::to_py;
use crate::recycled::{ROOM, Recycled, unless_taken};

/// Ids of the environments that run natively.
#[pyfunction]
pub(crate) fn builtin_envs() -> Vec<&'static str> {
    builtins::IDS.to_vec()
}

/// The rows of `bounds`.
fn pairs(bounds: &Bound<'_, PyAny>) -> PyResult<Vec<(f64, f64)>> {
    let bounds = any_shape::<f64, Ix2>("bounds", bounds)?;
    let &[_, 2] = bounds.shape() else {
        return Err(PyValueError::new_err(format!(
            "bounds: has shape {:?}, expected (state_dim, 2)",
            bounds.shape()
        )));
    };
    let rows = bounds.as_slice()?.chunks_exact(2);
    Ok(rows.map(|row| (row[0], row[1])).collect())
}

/// Built-in environments stepped together, with same-step autoreset.
///
/// `rlox.VecEnv` is the Gymnasium interface over it.
#[pyclass(module = "rlox._core", frozen)]
pub(crate) struct VecEnv {
    /// Gone while a collector has them.
    inner: Mutex<Option<CoreVecEnv>>,
    /// The seams are no business of Python's: facts that never change are kept at hand.
    #[pyo3(get)]
    pub(crate) n_envs: usize,
    #[pyo3(get)]
    pub(crate) obs_dim: usize,
    #[pyo3(get)]
    env_id: &'static str,
    pub(crate) action_space: Space,
    observation_space: Space,
    results: Mutex<RecycledSteps>,
}

/// Arrays of earlier steps.
struct RecycledSteps {
    obs: Recycled,
    rewards: Recycled,
    flags: Recycled,
    masks: Recycled,
    final_obs: Recycled,
}

impl RecycledSteps {
    /// None yet, and never more than `room` of a kind; `room` last observations an environment.
    fn new(n_envs: usize, room: usize) -> Self {
        let [obs, rewards, flags, masks] = [(); 4].map(|()| Recycled::new(room));
        let final_obs = Recycled::new(n_envs * room);
        Self {
            obs,
            rewards,
            flags,
            masks,
            final_obs,
        }
    }

    fn take<'py>(&mut self, py: Python<'py>, n_envs: usize, obs_dim: usize) -> StepArrays<'py> {
        let obs = self.obs.take::<f32, Ix2, 2>(py, [n_envs, obs_dim]);
        let rewards = self.rewards.take::<f64, Ix1, 1>(py, [n_envs]);
        let [terminations, truncations] =
            [(); 2].map(|()| self.flags.take::<bool, Ix1, 1>(py, [n_envs]));
        (
            obs.into_any(),
            rewards.into_any(),
            terminations.into_any(),
            truncations.into_any(),
        )
    }

    /// The last observations, each at the place of its environment.
    fn final_obs<'py>(
        &mut self,
        py: Python<'py>,
        n_envs: usize,
        obs_dim: usize,
        finals: &Finals,
    ) -> PyResult<Bound<'py, PyArray1<Py<PyAny>>>> {
        if self.final_obs.has_room() {
            let copies = finals
                .iter()
                .map(|(i, row)| (i, self.final_obs.take_copy(py, row)));
            return Ok(objects(py, n_envs, copies));
        }
        let envs = finals.envs();
        let all = PyArray1::from_slice(py, finals.obs()).reshape([envs.len(), obs_dim])?;
        Ok(objects(py, n_envs, envs.iter().copied().zip(rows(&all)?)))
    }
}

/// Arrays of a step: observations, rewards, terminations, truncations.
type StepArrays<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
);
/// The same, and infos.
type StepResult<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyDict>,
);

#[pymethods]
impl VecEnv {
    /// The i-th environment is seeded with `seed + i`.
    ///
    /// Raises ValueError for an id that is not built in, for no environment or more than there is
    /// memory for, and for a seed of 2**128 - n_envs or more.
    #[new]
    fn new(env_id: &str, n_envs: usize, seed: u128) -> PyResult<Self> {
        Self::with_room(env_id, n_envs, seed, ROOM)
    }

    /// Space of one environment's observations: `n` of a discrete one, `(low, high)` of a box.
    #[getter]
    fn observation_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        describe(py, &self.observation_space)
    }

    /// Space of one environment's actions, likewise.
    #[getter]
    fn action_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        describe(py, &self.action_space)
    }

    /// Start new episodes; returns the observations `[n_envs, obs_dim]` float32.
    ///
    /// `seeds` one an environment (`None`: its stream goes on), `mask` bool `[n_envs]` of those to
    /// reset (default all), `bounds` float64 `[state_dim, 2]` of the initial state's uniform draw.
    #[pyo3(signature = (seeds=None, mask=None, bounds=None, out=None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seeds: Option<Vec<Option<u128>>>,
        mask: Option<&Bound<'py, PyAny>>,
        bounds: Option<&Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _crossing = VEC_ENV_RESET.enter(self.n_envs * self.obs_dim * size_of::<f32>());
        let bounds = bounds.map(pairs).transpose()?;
        let mask = mask
            .map(|mask| input::<bool, Ix1>("mask", mask, &[self.n_envs]))
            .transpose()?;
        let out = out.unwrap_or_else(|| self.new_obs(py).into_any());
        let rows = target::<f32, Ix2>("out", &out, &[self.n_envs, self.obs_dim])?;
        let how = Reset {
            seeds: seeds.as_deref(),
            mask: mask.as_ref().map(|mask| mask.as_slice()).transpose()?,
            bounds: bounds.as_deref(),
        };
        self.with(|env| {
            let obs = env.reset(how)?;
            Ok(rows.fill(|rows| obs.copy_to(rows)))
        })
        .map_err(to_py)??;
        Ok(out)
    }

    /// Step all environments; returns observations `[n_envs, obs_dim]` float32, rewards float64,
    /// terminations bool, truncations bool (all `[n_envs]`), and infos: where episodes have ended,
    /// those of Gymnasium's same-step autoreset, else an empty dictionary.
    ///
    /// `actions`: integers `[n_envs]` (not uint64), or float32 `[n_envs, act_dim]`. `out` takes the
    /// four arrays of an earlier step and writes into them.
    #[pyo3(signature = (actions, out=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        out: Option<StepArrays<'py>>,
    ) -> PyResult<StepResult<'py>> {
        let mut crossing = VEC_ENV_STEP.enter(self.n_envs * (4 * self.obs_dim + 10));
        let n = [self.n_envs];
        let out = out
            .unwrap_or_else(|| self.results(|results| results.take(py, self.n_envs, self.obs_dim)));
        // Before `out` is looked at: what converts actions is Python's, and may do anything to it.
        let actions = ActionArray::extract(&self.action_space, self.n_envs, actions)?;
        let actions = actions.view()?;
        let obs = target::<f32, Ix2>("out[0]", &out.0, &[self.n_envs, self.obs_dim])?;
        let rewards = target::<f64, Ix1>("out[1]", &out.1, &n)?;
        let terminations = target::<bool, Ix1>("out[2]", &out.2, &n)?;
        let truncations = target::<bool, Ix1>("out[3]", &out.3, &n)?;

        crossing.add_bytes(match actions {
            Actions::Discrete(actions) => size_of_val(actions),
            Actions::Continuous(actions) => size_of_val(actions),
        });
        let finals = self
            .with(|env| {
                let batch = env.step(actions)?;
                Ok(obs
                    .fill(|obs| batch.obs.copy_to(obs))
                    .and_then(|()| rewards.fill(|to| to.copy_from_slice(&batch.rewards)))
                    .and_then(|()| terminations.fill(|to| to.copy_from_slice(&batch.terminated)))
                    .and_then(|()| truncations.fill(|to| to.copy_from_slice(&batch.truncated)))
                    .map(|()| {
                        (!batch.final_obs.envs().is_empty()).then(|| batch.final_obs.clone())
                    }))
            })
            .map_err(to_py)??;
        // Not while the environments are locked: a finaliser of an earlier result may step them.
        let infos = match finals {
            Some(finals) => self.infos(py, &finals)?,
            None => PyDict::new(py),
        };
        Ok((out.0, out.1, out.2, out.3, infos))
    }

    /// State of environment `i`, float64, and the number of steps in its episode.
    fn state<'py>(&self, py: Python<'py>, i: usize) -> PyResult<(Bound<'py, PyArray1<f64>>, u32)> {
        let (state, elapsed) = self.with(|env| env.state(i)).map_err(to_py)?;
        Ok((PyArray1::from_vec(py, state), elapsed))
    }

    /// Put environment `i` into `state`, float64, `elapsed` steps into its episode.
    #[pyo3(signature = (i, state, elapsed=0))]
    fn set_state(&self, i: usize, state: &Bound<'_, PyAny>, elapsed: u32) -> PyResult<()> {
        let state = any_shape::<f64, Ix1>("state", state)?;
        let state = state.as_slice()?;
        self.with(|env| env.set_state(i, state, elapsed))
            .map_err(to_py)
    }
}

impl VecEnv {
    /// With at most `room` arrays of each kind that are given out again: P25's seam.
    pub(crate) fn with_room(
        env_id: &str,
        n_envs: usize,
        seed: u128,
        room: usize,
    ) -> PyResult<Self> {
        let env = CoreVecEnv::new(env_id, n_envs, seed).map_err(to_py)?;
        Ok(Self {
            n_envs,
            obs_dim: env.observation_space().dim(),
            env_id: env.env_id(),
            action_space: env.action_space().clone(),
            observation_space: env.observation_space().clone(),
            inner: Mutex::new(Some(env)),
            results: Mutex::new(RecycledSteps::new(n_envs, room)),
        })
    }

    fn new_obs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f32>> {
        PyArray2::zeros(py, [self.n_envs, self.obs_dim], false)
    }

    /// `f` with the arrays of earlier steps, or with none.
    fn results<R>(&self, f: impl FnOnce(&mut RecycledSteps) -> R) -> R {
        unless_taken(&self.results, || RecycledSteps::new(self.n_envs, 0), f)
    }

    /// Gymnasium's infos of a step with same-step autoreset in which episodes ended.
    fn infos<'py>(&self, py: Python<'py>, finals: &Finals) -> PyResult<Bound<'py, PyDict>> {
        let mut mask = vec![false; self.n_envs];
        finals.envs().iter().for_each(|&i| mask[i] = true);
        let (final_obs, [of_obs, of_info]) = self.results(|results| {
            let final_obs = results.final_obs(py, self.n_envs, self.obs_dim, finals)?;
            let masks = [(); 2].map(|()| results.masks.take_copy(py, &mask));
            PyResult::Ok((final_obs, masks))
        })?;
        let infos = PyDict::new(py);
        infos.set_item(intern!(py, "final_obs"), final_obs)?;
        infos.set_item(intern!(py, "_final_obs"), of_obs)?;
        infos.set_item(intern!(py, "final_info"), PyDict::new(py))?;
        infos.set_item(intern!(py, "_final_info"), of_info)?;
        Ok(infos)
    }

    /// `f` with the environments, unless somebody else has them just now.
    pub(crate) fn with<R>(
        &self,
        f: impl FnOnce(&mut CoreVecEnv) -> Result<R, RloxError>,
    ) -> Result<R, RloxError> {
        let mut slot = self.slot()?;
        slot.as_mut().map_or_else(|| Err(lent()), f)
    }

    /// Hands the environments over to a collector.
    pub(crate) fn lend(&self) -> Result<CoreVecEnv, RloxError> {
        self.slot()?.take().ok_or_else(lent)
    }

    /// Takes them back.
    pub(crate) fn restore(&self, env: CoreVecEnv) {
        // Of environments that are lent nobody keeps the lock for long.
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(env);
    }

    /// Does not wait: who steps may want the interpreter, which whoever asks here keeps.
    fn slot(&self) -> Result<MutexGuard<'_, Option<CoreVecEnv>>, RloxError> {
        match self.inner.try_lock() {
            Ok(slot) => Ok(slot),
            // A panic left them between two steps, which the next reset repairs.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(RloxError::InvalidState(
                "another thread is stepping these environments".into(),
            )),
        }
    }
}

fn lent() -> RloxError {
    RloxError::InvalidState("an AsyncCollector has these environments; close() it first".into())
}

/// Actions as they came, borrowed.
pub(crate) enum ActionArray<'py> {
    Discrete(Read<'py, i64, Ix1>),
    Continuous(Read<'py, f32, Ix2>),
}

impl<'py> ActionArray<'py> {
    /// Actions of `n_envs` environments, of the dtype and shape of `space`. For a discrete one all
    /// integers do but uint64, of which not every number is one of int64.
    pub(crate) fn extract(
        space: &Space,
        n_envs: usize,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        match space {
            Space::Discrete(_) => {
                let of_other_width = actions.cast::<PyUntypedArray>().is_ok_and(|array| {
                    matches!(array.dtype().kind(), b'i' | b'u') && array.dtype().itemsize() != 8
                });
                if of_other_width {
                    let actions = actions.call_method1("astype", ("int64",))?;
                    input("actions", &actions, &[n_envs]).map(Self::Discrete)
                } else {
                    input("actions", actions, &[n_envs]).map(Self::Discrete)
                }
            }
            Space::Box { low, .. } => {
                input("actions", actions, &[n_envs, low.len()]).map(Self::Continuous)
            }
        }
    }

    pub(crate) fn view(&self) -> PyResult<Actions<'_>> {
        Ok(match self {
            Self::Discrete(actions) => Actions::Discrete(actions.as_slice()?),
            Self::Continuous(actions) => Actions::Continuous(actions.as_slice()?),
        })
    }
}

fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyAny>> {
    match space {
        Space::Discrete(n) => Ok(n.into_pyobject(py)?.into_any()),
        Space::Box { low, high } => {
            let bounds = (
                PyArray1::from_slice(py, low),
                PyArray1::from_slice(py, high),
            );
            Ok(bounds.into_pyobject(py)?.into_any())
        }
    }
}
