//! The built-in environments for Python: NumPy in, NumPy out.
#![allow(
    unsafe_code,
    reason = "arrays are read where they lie, which is sound while the interpreter is kept"
)]

use std::sync::Mutex;

use numpy::{
    Ix1, Ix2, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::env::builtins;
use rlox_core::env::obs_store::ObsStore;
use rlox_core::env::parallel::Reset;
use rlox_core::env::physics::Bounds;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::env::stepping::Finals;
use rlox_core::switchboard::VecEnv as CoreVecEnv;

use crate::arrays::{Read, any_shape, apart, input, made, target};
use crate::crossing::{VEC_ENV_RESET, VEC_ENV_STEP};
use crate::errors::{reserved, to_py};
use crate::lent::Envs;
use crate::names::names;
use crate::numbers::List;
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
    // SAFETY: the interpreter is kept until they are copied.
    let rows = unsafe { bounds.as_slice() }.chunks_exact(2);
    Ok(rows.map(|row| (row[0], row[1])).collect())
}

/// Built-in environments stepped together, with same-step autoreset.
///
/// `rlox.VecEnv` is the Gymnasium interface over it.
#[pyclass(module = "rlox._core", frozen)]
pub(crate) struct VecEnv {
    pub(crate) envs: Envs,
    /// The seams are no business of Python's: facts that never change are kept at hand.
    #[pyo3(get)]
    pub(crate) n_envs: usize,
    #[pyo3(get)]
    pub(crate) obs_dim: usize,
    #[pyo3(get)]
    env_id: &'static str,
    pub(crate) action_space: Space,
    observation_space: Space,
    /// What `bounds` of `reset` are by default, row by row.
    #[pyo3(get)]
    initial_bounds: Vec<Bounds>,
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

    fn take<'py>(
        &mut self,
        py: Python<'py>,
        n_envs: usize,
        obs_dim: usize,
    ) -> PyResult<StepArrays<'py>> {
        let obs = self.obs.take::<f32, Ix2, 2>(py, [n_envs, obs_dim])?;
        let rewards = self.rewards.take::<f64, Ix1, 1>(py, [n_envs])?;
        let mut flags = || self.flags.take::<bool, Ix1, 1>(py, [n_envs]);
        let (terminations, truncations) = (flags()?, flags()?);
        Ok((
            obs.into_any(),
            rewards.into_any(),
            terminations.into_any(),
            truncations.into_any(),
        ))
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
                .map(|(i, row)| Ok((i, self.final_obs.take_copy(py, row)?)));
            return made::objects(py, n_envs, copies);
        }
        let envs = finals.envs();
        let all = made::copied(py, finals.obs())?.reshape([envs.len(), obs_dim])?;
        let rows = envs.iter().copied().zip(made::rows(&all));
        made::objects(py, n_envs, rows.map(|(i, row)| Ok((i, row?))))
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
    /// reset (default all), `bounds` float64 `[drawn, 2]` of the uniform draw of those components of the
    /// initial state that are drawn.
    #[pyo3(signature = (seeds=None, mask=None, bounds=None, out=None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seeds: Option<List<Option<u128>>>,
        mask: Option<&Bound<'py, PyAny>>,
        bounds: Option<&Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _crossing = VEC_ENV_RESET.enter(self.n_envs * self.obs_dim * size_of::<f32>());
        let bounds = bounds.map(pairs).transpose()?;
        let shape = [self.n_envs, self.obs_dim];
        let out = match out {
            Some(out) => out,
            None => made::zeros::<f32, Ix2, 2>(py, shape)?.into_any(),
        };
        self.envs.with(py, |env| {
            let mask = mask
                .map(|mask| input::<bool, Ix1>("mask", mask, &[self.n_envs]))
                .transpose()?;
            let rows = target::<f32, Ix2>("out", &out, &shape)?;
            // SAFETY: the interpreter is kept from here on; the mask is read before rows are written.
            let mask = (mask.as_ref()).map(|mask| unsafe { mask.as_flags("mask") });
            let how = Reset {
                seeds: seeds.as_ref().map(|seeds| &seeds.0[..]),
                mask: mask.transpose()?,
                bounds: bounds.as_deref(),
            };
            let obs = env.reset(how).map_err(to_py)?;
            // SAFETY: the same.
            unsafe { rows.fill(|rows| obs.copy_to(rows)) };
            Ok(())
        })?;
        Ok(out)
    }

    /// Step all environments; returns observations `[n_envs, obs_dim]` float32, rewards float64,
    /// terminations bool, truncations bool (all `[n_envs]`), and infos: where episodes have ended,
    /// those of Gymnasium's same-step autoreset, else an empty dictionary.
    ///
    /// `actions`: integers `[n_envs]` (not uint64), or float32 `[n_envs, act_dim]`. `out` takes the
    /// four arrays of an earlier step and writes into them; no two of them may share memory.
    #[pyo3(signature = (actions, out=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        out: Option<StepArrays<'py>>,
    ) -> PyResult<StepResult<'py>> {
        let mut crossing = VEC_ENV_STEP.enter(self.n_envs * (4 * self.obs_dim + 10));
        let n = [self.n_envs];
        let given = out.is_some();
        let out = match out {
            Some(out) => out,
            None => self.results(|results| results.take(py, self.n_envs, self.obs_dim))?,
        };
        let converted = ActionArray::converted(&self.action_space, actions)?;
        let actions = converted.as_ref().unwrap_or(actions);
        let finals = self.envs.with(py, |env| {
            let actions = ActionArray::extract(&self.action_space, self.n_envs, actions)?;
            let obs = target::<f32, Ix2>("out[0]", &out.0, &[self.n_envs, self.obs_dim])?;
            let rewards = target::<f64, Ix1>("out[1]", &out.1, &n)?;
            let terminations = target::<bool, Ix1>("out[2]", &out.2, &n)?;
            let truncations = target::<bool, Ix1>("out[3]", &out.3, &n)?;
            if given {
                apart(&[
                    ("out[0]", obs.place()),
                    ("out[1]", rewards.place()),
                    ("out[2]", terminations.place()),
                    ("out[3]", truncations.place()),
                ])?;
            }
            // SAFETY: the interpreter is kept from here on; actions are read before anything is written.
            let actions = unsafe { actions.view() };
            crossing.add_bytes(match actions {
                Actions::Discrete(actions) => size_of_val(actions),
                Actions::Continuous(actions) => size_of_val(actions),
            });
            let batch = env.step(actions).map_err(to_py)?;
            // SAFETY: the same.
            unsafe {
                obs.fill(|obs| batch.obs.copy_to(obs));
                rewards.copy_from(&batch.rewards);
                terminations.copy_from(&batch.terminated);
                truncations.copy_from(&batch.truncated);
            }
            let any = !batch.final_obs.envs().is_empty();
            any.then(|| batch.final_obs.try_clone().map_err(to_py))
                .transpose()
        })?;
        // Not while the environments are locked: a finaliser of an earlier result may step them.
        let infos = match finals {
            Some(finals) => self.infos(py, &finals)?,
            None => made::dict(py)?,
        };
        Ok((out.0, out.1, out.2, out.3, infos))
    }

    /// State of environment `i`, float64, and the number of steps in its episode.
    fn state<'py>(&self, py: Python<'py>, i: usize) -> PyResult<(Bound<'py, PyArray1<f64>>, u32)> {
        let (state, elapsed) = self.envs.with(py, |env| env.state(i).map_err(to_py))?;
        Ok((made::copied(py, &state)?, elapsed))
    }

    /// Put environment `i` into `state`, float64, `elapsed` steps into its episode.
    #[pyo3(signature = (i, state, elapsed=0))]
    fn set_state(&self, i: usize, state: &Bound<'_, PyAny>, elapsed: u32) -> PyResult<()> {
        self.envs.with(state.py(), |env| {
            let state = any_shape::<f64, Ix1>("state", state)?;
            // SAFETY: the interpreter is kept from here on, and no array is written to.
            let state = unsafe { state.as_slice() };
            env.set_state(i, state, elapsed).map_err(to_py)
        })
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
            initial_bounds: env.initial_bounds().to_vec(),
            envs: Envs::new(env),
            results: Mutex::new(RecycledSteps::new(n_envs, room)),
        })
    }

    /// `f` with the arrays of earlier steps, or with none.
    fn results<R>(&self, f: impl FnOnce(&mut RecycledSteps) -> R) -> R {
        unless_taken(&self.results, || RecycledSteps::new(self.n_envs, 0), f)
    }

    /// Gymnasium's infos of a step with same-step autoreset in which episodes ended.
    fn infos<'py>(&self, py: Python<'py>, finals: &Finals) -> PyResult<Bound<'py, PyDict>> {
        let mut mask = reserved(self.n_envs)?;
        mask.resize(self.n_envs, false);
        finals.envs().iter().for_each(|&i| mask[i] = true);
        let (final_obs, [of_obs, of_info]) = self.results(|results| {
            let final_obs = results.final_obs(py, self.n_envs, self.obs_dim, finals)?;
            let mut mask = || results.masks.take_copy(py, &mask);
            PyResult::Ok((final_obs, [mask()?, mask()?]))
        })?;
        let (infos, names) = (made::dict(py)?, names(py));
        infos.set_item(&names.final_obs, final_obs)?;
        infos.set_item(&names.has_final_obs, of_obs)?;
        infos.set_item(&names.final_info, made::dict(py)?)?;
        infos.set_item(&names.has_final_info, of_info)?;
        Ok(infos)
    }
}

/// Actions as they came, borrowed.
pub(crate) enum ActionArray<'py> {
    Discrete(Read<'py, i64, Ix1>),
    Continuous(Read<'py, f32, Ix2>),
}

impl<'py> ActionArray<'py> {
    /// Integers of another width as int64, if `actions` are such and a discrete space wants them; not
    /// uint64, of which not every number is one of int64. This runs NumPy's code, or a subclass's.
    pub(crate) fn converted(
        space: &Space,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let of_other_width = matches!(space, Space::Discrete(_))
            && actions.cast::<PyUntypedArray>().is_ok_and(|array| {
                let dtype = array.dtype();
                matches!(dtype.kind(), b'i' | b'u') && dtype.itemsize() != 8
            });
        of_other_width
            .then(|| actions.call_method1("astype", ("int64",)))
            .transpose()
    }

    /// Actions of `n_envs` environments, of the dtype and shape of `space`.
    pub(crate) fn extract(
        space: &Space,
        n_envs: usize,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        match space {
            Space::Discrete(_) => input("actions", actions, &[n_envs]).map(Self::Discrete),
            Space::Box { low, .. } => {
                input("actions", actions, &[n_envs, low.len()]).map(Self::Continuous)
            }
        }
    }

    /// What they are.
    ///
    /// # Safety
    /// As [`Read::as_slice`].
    pub(crate) unsafe fn view(&self) -> Actions<'_> {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Self::Discrete(actions) => Actions::Discrete(actions.as_slice()),
                Self::Continuous(actions) => Actions::Continuous(actions.as_slice()),
            }
        }
    }
}

fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyAny>> {
    match space {
        Space::Discrete(n) => Ok(n.into_pyobject(py)?.into_any()),
        Space::Box { low, high } => {
            let bounds = (made::copied(py, low)?, made::copied(py, high)?);
            Ok(bounds.into_pyobject(py)?.into_any())
        }
    }
}
