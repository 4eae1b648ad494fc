//! `VecEnv`: the built-in environments for Python. `rlox.VecEnv` wraps it as Gymnasium's `VectorEnv`.

use std::sync::Mutex;

use numpy::{Ix1, Ix2, PyArray1, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rlox_core::env::builtins;
use rlox_core::env::obs_store::ObsStore;
use rlox_core::env::physics::Bounds;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::env::stepping::Finals;
use rlox_core::env::vec_env::Reset;
use rlox_core::switchboard::{P28, VecEnv as CoreVecEnv};

use crate::arrays::{
    Argument, BORROWS, Looked, Looks, Output, ROOM, Unguarded, made, reading, unless_taken, writing,
};
use crate::crossing::{VEC_ENV_RESET, VEC_ENV_STEP};
use crate::end_infos::EndInfos;
use crate::errors::{reserved, to_py};
use crate::lent::Envs;
use crate::names::names;
use crate::numbers::{List, size};
use crate::recycled_steps::RecycledSteps;

/// The ids of the environments that run natively, in Rust.
#[pyfunction]
pub fn builtin_envs() -> Vec<&'static str> {
    builtins::IDS.to_vec()
}

/// The rows of the array `bounds`, float64 `[n, 2]`, as pairs (low, high).
fn rows_of(bounds: &Bound<'_, PyAny>) -> PyResult<Vec<(f64, f64)>> {
    let py = bounds.py();
    let bounds = Argument::new("bounds", bounds);
    reading(py, &Unguarded, BORROWS, |(), look| {
        let bounds = look.read::<f64, Ix2>(bounds, None)?;
        let &[n, 2] = bounds.shape() else {
            return Err(PyValueError::new_err(format!(
                "bounds: has shape {:?}, expected (state_dim, 2)",
                bounds.shape()
            )));
        };
        let mut rows = reserved(n)?;
        rows.extend(bounds.chunks_exact(2).map(|row| (row[0], row[1])));
        Ok(rows)
    })
}

/// Copies of a built-in environment that are stepped together, with Gymnasium's same-step autoreset.
///
/// `rlox.VecEnv` has Gymnasium's interface to it.
#[pyclass(module = "rlox._core", frozen)]
pub struct VecEnv {
    pub(crate) envs: Envs,
    /// What never changes is copied here, so that it can be read while a collector has the
    /// environments.
    #[pyo3(get)]
    pub(crate) n_envs: usize,
    #[pyo3(get)]
    pub(crate) obs_dim: usize,
    #[pyo3(get)]
    env_id: &'static str,
    pub(crate) action_space: Space,
    observation_space: Space,
    /// The default of `bounds` in `reset`: (low, high) of each drawn component of the initial state.
    #[pyo3(get)]
    initial_bounds: Vec<Bounds>,
    results: Mutex<RecycledSteps>,
    /// Whether the infos of a step in which episodes ended are made when they are read: P28's seam.
    infos_when_read: bool,
}

/// The arrays of a step: observations, rewards, terminations, truncations.
type StepArrays<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
);
/// The arrays of a step, then infos.
type StepResult<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyDict>,
);

#[pymethods]
impl VecEnv {
    /// `n_envs` copies of the environment `env_id`. The i-th one is seeded with `seed + i`.
    ///
    /// Raises ValueError for an id that is not built in, for no environments or more than there is
    /// memory for, and for a seed of 2**128 - n_envs or more.
    #[new]
    fn new(env_id: &str, n_envs: i128, seed: u128) -> PyResult<Self> {
        Self::with_forms(env_id, size("n_envs", n_envs)?, seed, ROOM, P28)
    }

    /// The space of one environment's observations: the number n of a discrete space, the arrays (low,
    /// high) of a box.
    #[getter]
    fn observation_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        describe(py, &self.observation_space)
    }

    /// The space of one environment's actions, in the same form.
    #[getter]
    fn action_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        describe(py, &self.action_space)
    }

    /// Starts new episodes and returns the observations, float32 `[n_envs, obs_dim]`.
    ///
    /// `seeds` has a seed for each environment; with None, its random numbers go on. `mask`, bool
    /// `[n_envs]`, says which environments to reset; by default all. `bounds`, float64 `[drawn, 2]`,
    /// has (low, high) of each component of the initial state that is drawn uniformly. The observations
    /// are written to `out` if it is given.
    ///
    /// Raises ValueError for a shape or a bound, TypeError for another dtype, RuntimeError if the
    /// environments are in use.
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
        let bounds = bounds.map(rows_of).transpose()?;
        let shape = [self.n_envs, self.obs_dim];
        let mut out = match &out {
            Some(out) => Output::given("out", out),
            None => Output::new::<f32, Ix2, 2>(py, shape)?,
        };
        let mask = mask.map(|mask| Argument::new("mask", mask));
        writing(py, &self.envs, |env, look| {
            let mask = mask
                .map(|mask| look.read::<bool, Ix1>(mask, Some(&[self.n_envs])))
                .transpose()?;
            let mut rows = look.later::<f32, Ix2>(&mut out, &shape)?;
            let how = Reset {
                seeds: seeds.as_ref().map(|seeds| &seeds.0[..]),
                mask: mask.as_ref().map(Looked::flags).transpose()?,
                bounds: bounds.as_deref(),
            };
            let obs = env.reset(how).map_err(to_py)?;
            drop(mask);
            obs.copy_to(rows.now(look));
            Ok(())
        })?;
        Ok(out.give(py))
    }

    /// Steps all environments. Returns observations, float32 `[n_envs, obs_dim]`, rewards, float64
    /// `[n_envs]`, terminations and truncations, bool `[n_envs]`, and infos: a dictionary, which is empty
    /// unless an episode ended; then it has the entries of Gymnasium's same-step autoreset, which are made
    /// when they are first read.
    ///
    /// `actions` are integers `[n_envs]`, but not uint64, or float32 `[n_envs, act_dim]`. If `out` is
    /// given, the four arrays of an earlier step, the results are written to them; no two of them may
    /// share memory.
    ///
    /// Raises ValueError for a shape, for an index outside of a discrete space and for a number that is
    /// not finite, TypeError for another dtype, RuntimeError before the first reset or if the
    /// environments are in use.
    #[pyo3(signature = (actions, out=None))]
    fn step<'py>(
        slf: &Bound<'py, Self>,
        actions: &Bound<'py, PyAny>,
        out: Option<StepArrays<'py>>,
    ) -> PyResult<StepResult<'py>> {
        let (this, py) = (slf.get(), slf.py());
        let mut crossing = VEC_ENV_STEP.enter(this.n_envs * (4 * this.obs_dim + 10));
        let mut out = match out {
            Some((obs, rewards, terminations, truncations)) => [
                Output::given("out[0]", &obs),
                Output::given("out[1]", &rewards),
                Output::given("out[2]", &terminations),
                Output::given("out[3]", &truncations),
            ],
            None => this
                .results(|results| results.take(py, this.n_envs, this.obs_dim))?
                .map(Output::New),
        };
        let converted = ActionArray::converted(&this.action_space, actions)?;
        let actions = converted.as_ref().unwrap_or(actions);
        let actions = Argument::new("actions", actions);
        let finals = writing(py, &this.envs, |env, look| {
            let [obs, rewards, terminations, truncations] = &mut out;
            let n = [this.n_envs];
            let actions = ActionArray::look(look, &this.action_space, this.n_envs, actions)?;
            let mut obs = look.later::<f32, Ix2>(obs, &[this.n_envs, this.obs_dim])?;
            let mut rewards = look.later::<f64, Ix1>(rewards, &n)?;
            let terminations = look.later::<bool, Ix1>(terminations, &n)?;
            let truncations = look.later::<bool, Ix1>(truncations, &n)?;
            crossing.add_bytes(actions.n_bytes());
            let batch = env.step(actions.view()).map_err(to_py)?;
            drop(actions);
            batch.obs.copy_to(obs.now(look));
            rewards.now(look).copy_from_slice(&batch.rewards);
            terminations.copy_from(&batch.terminated, look);
            truncations.copy_from(&batch.truncated, look);
            let any = !batch.final_obs.envs().is_empty();
            any.then(|| batch.final_obs.try_clone().map_err(to_py))
                .transpose()
        })?;
        // The infos are made after the environments were unlocked, since making objects may run a
        // finaliser, which may step the environments.
        let infos = match finals {
            Some(finals) if this.infos_when_read => EndInfos::of(slf, finals)?,
            Some(finals) => {
                let infos = made::dict(py)?;
                for (name, value) in this.end_infos(py, &finals)? {
                    infos.set_item(name, value)?;
                }
                infos
            }
            None => made::dict(py)?,
        };
        let [obs, rewards, terminations, truncations] = out.map(|array| array.give(py));
        Ok((obs, rewards, terminations, truncations, infos))
    }

    /// The state of environment `i`, float64 `[state_dim]`, and the number of steps in its episode so
    /// far.
    fn state<'py>(&self, py: Python<'py>, i: usize) -> PyResult<(Bound<'py, PyArray1<f64>>, u32)> {
        let (state, elapsed) = self.envs.with(py, |env| env.state(i).map_err(to_py))?;
        Ok((made::copied(py, &state)?, elapsed))
    }

    /// Puts environment `i` into `state`, float64 `[state_dim]`, after `elapsed` steps of its episode.
    #[pyo3(signature = (i, state, elapsed=0))]
    fn set_state(&self, i: usize, state: &Bound<'_, PyAny>, elapsed: u32) -> PyResult<()> {
        let py = state.py();
        let state = Argument::new("state", state);
        reading(py, &self.envs, BORROWS, |env, look| {
            let state = look.read::<f64, Ix1>(state, None)?;
            env.set_state(i, &state, elapsed).map_err(to_py)
        })
    }
}

impl VecEnv {
    /// The constructor, with the number of arrays of each kind that are given out again (P25's seam)
    /// and whether infos are made when they are read (P28's).
    pub fn with_forms(
        env_id: &str,
        n_envs: usize,
        seed: u128,
        room: usize,
        infos_when_read: bool,
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
            infos_when_read,
        })
    }

    /// Calls `f` with the arrays of earlier steps, or with none where they are in use.
    fn results<R>(&self, f: impl FnOnce(&mut RecycledSteps) -> R) -> R {
        unless_taken(&self.results, || RecycledSteps::new(self.n_envs, 0), f)
    }

    /// The entries of Gymnasium's infos of a step in which episodes ended, for same-step autoreset.
    pub(crate) fn end_infos<'py>(
        &self,
        py: Python<'py>,
        finals: &Finals,
    ) -> PyResult<[(&'static Py<PyString>, Bound<'py, PyAny>); 4]> {
        let mut mask = reserved(self.n_envs)?;
        mask.resize(self.n_envs, false);
        finals.envs().iter().for_each(|&i| mask[i] = true);
        let (final_obs, [of_obs, of_info]) = self.results(|results| {
            let final_obs = results.final_obs(py, self.n_envs, self.obs_dim, finals)?;
            let mut mask = || results.masks.take_copy(py, &mask);
            PyResult::Ok((final_obs, [mask()?, mask()?]))
        })?;
        let names = names(py);
        Ok([
            (&names.final_obs, final_obs.into_any()),
            (&names.has_final_obs, of_obs.into_any()),
            (&names.final_info, made::dict(py)?.into_any()),
            (&names.has_final_info, of_info.into_any()),
        ])
    }
}

/// An array of actions that a scope of `arrays` has checked.
pub(crate) enum ActionArray<'x> {
    Discrete(Looked<'x, i64, Ix1>),
    Continuous(Looked<'x, f32, Ix2>),
}

impl<'x> ActionArray<'x> {
    /// `actions` as int64, if the space is discrete and they are integers of another width. Not for
    /// uint64, whose larger numbers int64 cannot hold. It must be called before a scope of `arrays`
    /// begins, since it runs code of NumPy, or of a subclass of its arrays.
    pub(crate) fn converted<'py>(
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
    #[inline]
    pub(crate) fn look(
        look: &'x impl Looks,
        space: &Space,
        n_envs: usize,
        actions: Argument<'x>,
    ) -> PyResult<Self> {
        match space {
            Space::Discrete(_) => look.read(actions, Some(&[n_envs])).map(Self::Discrete),
            Space::Box { low, .. } => look
                .read(actions, Some(&[n_envs, low.len()]))
                .map(Self::Continuous),
        }
    }

    pub(crate) fn n_bytes(&self) -> usize {
        match self {
            Self::Discrete(actions) => size_of_val(&actions[..]),
            Self::Continuous(actions) => size_of_val(&actions[..]),
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> Actions<'_> {
        match self {
            Self::Discrete(actions) => Actions::Discrete(actions),
            Self::Continuous(actions) => Actions::Continuous(actions),
        }
    }
}

/// A space as Python gets it: the number n of a discrete space, the arrays (low, high) of a box.
fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyAny>> {
    match space {
        Space::Discrete(n) => Ok(n.into_pyobject(py)?.into_any()),
        Space::Box { low, high } => {
            let bounds = (made::copied(py, low)?, made::copied(py, high)?);
            Ok(bounds.into_pyobject(py)?.into_any())
        }
    }
}
