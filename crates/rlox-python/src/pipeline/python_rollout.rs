//! `collect_python_rollout`: a rollout of an MLP policy in environments that Python steps.

use numpy::{Ix1, Ix2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::RloxError;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::env::stepping::{Outcome, Share};
use rlox_core::nn::PackedMlp;
use rlox_core::pipeline::fused::{self, MlpPolicy, Stream};
use rlox_core::pipeline::rollout::Collect;
use rlox_core::switchboard::Chosen;

use super::policy::attached;
use crate::arrays::{Argument, BORROWS, Looks, Unguarded, made, reading};
use crate::crossing::{COLLECT_PYTHON_ROLLOUT, Crossing};
use crate::errors::{copied, to_py};
use crate::fused::to_dict;
use crate::nn::{NetworkWithParams, mlp, only_one_kind};
use crate::numbers::{List, size};

/// What `step` returns: observations, rewards, ends of episodes, and which time limits ended.
type Stepped<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
);

/// Collects ``n_steps`` of an MLP policy in environments that Python steps: both networks, sampling,
/// log-probabilities and GAE run in Rust, and ``step`` is called once for each step. The GIL is held.
///
/// Actions are sampled as `collect_rollout` samples them, but are not clipped. With ``nvec`` or ``bits``
/// each choice, or bit, is sampled for itself, and an action's log-probability is the sum of theirs.
///
/// Parameters
/// ----------
/// step : callable
///     Takes the actions and steps all environments. They are int64 (n_envs,), with ``nvec`` (n_envs,
///     len(nvec)), or float32 (n_envs, act_dim); bits are 0 or 1.
///     Returns ``(obs, rewards, dones, cut_short)``: float32 (n_envs, obs_dim), float64 (n_envs,) and
///     bool (n_envs,). With same-step autoreset, ``obs`` are those to act on next. ``cut_short`` is None,
///     or ``(rows, final_obs)`` of the environments whose episode a time limit ended and nothing else:
///     their indices, int64 (k,), ascending, and last observations, float32 (k, obs_dim). Their value,
///     times ``gamma``, is added to the reward. Returns None to stop.
/// obs : ndarray, shape (n_envs, obs_dim), float32
///     The observations to begin with.
/// actor, critic, log_std, n_steps, gamma, gae_lambda, stream
///     As `collect_rollout` takes them. ``log_std`` is empty with ``nvec`` and with ``bits``.
/// nvec : list of int or None
///     The numbers of possibilities of several choices; the actor's outputs are their logits, side by
///     side.
/// bits : bool
///     Whether the actor's outputs are the logits of independent bits.
///
/// Returns
/// -------
/// dict of ndarrays or None
///     As `collect_rollout` returns it, but the columns of episodes are empty: ``step`` may count them.
///     With ``nvec``, ``actions`` is int64 (n_steps, n_envs, len(nvec)). None if ``step`` stopped.
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, a number out of range, more steps than there is memory for, an output of the
///     networks or an advantage that is not finite, more than one of ``log_std``, ``nvec`` and ``bits``.
/// TypeError
///     An argument or a result that is no array, or has another dtype.
/// MemoryError
///     There is no memory for the results.
/// Exception
///     What ``step`` raises.
#[pyfunction]
#[pyo3(signature = (
    step, obs, actor, critic, log_std, n_steps, gamma, gae_lambda, stream, nvec=None, bits=false,
))]
#[expect(
    clippy::too_many_arguments,
    reason = "a policy, where it acts, and how to collect"
)]
pub fn collect_python_rollout<'py>(
    py: Python<'py>,
    step: Py<PyAny>,
    obs: &Bound<'py, PyAny>,
    actor: NetworkWithParams<'py>,
    critic: NetworkWithParams<'py>,
    log_std: &Bound<'py, PyAny>,
    n_steps: i128,
    gamma: f64,
    gae_lambda: f64,
    stream: (u64, u64),
    nvec: Option<List<usize>>,
    bits: bool,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let mut crossing = COLLECT_PYTHON_ROLLOUT.enter(0);
    let n_steps = size("n_steps", n_steps)?;
    let (of_actor, of_critic) = (
        mlp("actor", &actor.0.0, &actor.1)?,
        mlp("critic", &critic.0.0, &critic.1)?,
    );
    let obs_dim = of_actor.n_inputs();
    let (actor, critic) = (
        Argument::new("actor", &actor.2),
        Argument::new("critic", &critic.2),
    );
    let (obs, log_std) = (Argument::new("obs", obs), Argument::new("log_std", log_std));
    // Copies, since the calls of `step` run other code while the rollout is under way.
    let (policy, obs) = reading(py, &Unguarded, BORROWS, |(), look| {
        let obs = look.read::<f32, Ix2>(obs, None)?;
        let actor = look.read::<f32, Ix1>(actor, Some(&[of_actor.n_params()]))?;
        let critic = look.read::<f32, Ix1>(critic, Some(&[of_critic.n_params()]))?;
        let log_std = look.read::<f32, Ix1>(log_std, None)?;
        only_one_kind(&nvec, !log_std.is_empty(), bits)?;
        let packed = |mlp, params| PackedMlp::new(mlp, params).map_err(to_py);
        let actor = packed(of_actor.clone(), &actor)?;
        let critic = packed(of_critic.clone(), &critic)?;
        let (width, n_outputs) = (obs.shape()[1], of_actor.n_outputs());
        let policy = match (&nvec, log_std.len()) {
            (Some(List(nvec)), _) => MlpPolicy::choosing(actor, critic, nvec, width),
            (None, _) if bits => MlpPolicy::bits(actor, critic, width),
            (None, 0) => MlpPolicy::new(actor, critic, &[], width, &Space::Discrete(n_outputs)),
            (None, n) => {
                let space = Space::Box {
                    low: vec![f32::NEG_INFINITY; n],
                    high: vec![f32::INFINITY; n],
                };
                MlpPolicy::new(actor, critic, &log_std, width, &space)
            }
        };
        Ok((policy.map_err(to_py)?, copied(&obs)?))
    })?;
    let n_choices = nvec.map(|List(nvec)| nvec.len());
    let n_envs = obs.len() / obs_dim;
    let how = Collect {
        n_steps,
        gamma,
        gae_lambda,
    };
    let (seed, rollout) = stream;
    let mut ended = None;
    let steps = Box::new(PythonSteps {
        step: &step,
        n_envs,
        n_choices,
        crossing: &mut crossing,
        ended: &mut ended,
    });
    let stream = Stream { seed, rollout };
    match fused::collect_from::<Chosen>(steps, &obs, &policy, how, stream) {
        Ok(rollout) => to_dict(py, rollout, [n_steps, n_envs], n_choices).map(Some),
        Err(error) => ended.unwrap_or_else(|| Err(to_py(error))).map(|()| None),
    }
}

/// Environments that a Python function steps.
struct PythonSteps<'a> {
    step: &'a Py<PyAny>,
    n_envs: usize,
    /// How many choices an action is; None for one that is an index or floats.
    n_choices: Option<usize>,
    crossing: &'a mut Crossing,
    /// Why there are no more steps: the function has stopped, or has raised an error.
    ended: &'a mut Option<PyResult<()>>,
}

impl Share for PythonSteps<'_> {
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut [f32],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError> {
        let ended = match attached(|py| self.call(py, actions, obs, outcome)) {
            Ok(true) => return Ok(()),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        *self.ended = Some(ended);
        Err(RloxError::InvalidState("there are no more steps".into()))
    }
}

impl PythonSteps<'_> {
    /// Steps the environments; false if the function has stopped.
    fn call(
        &mut self,
        py: Python<'_>,
        actions: Actions<'_>,
        obs: &mut [f32],
        outcome: Outcome<'_>,
    ) -> PyResult<bool> {
        let (n, width) = (self.n_envs, obs.len() / self.n_envs);
        let actions = match (actions, self.n_choices) {
            (Actions::Discrete(actions), None) => made::copied(py, actions)?.into_any(),
            (Actions::Discrete(actions), Some(choices)) => {
                let actions = made::copied(py, actions)?.reshape([n, choices])?;
                actions.into_any()
            }
            (Actions::Continuous(actions), _) => {
                let actions = made::copied(py, actions)?.reshape([n, actions.len() / n])?;
                actions.into_any()
            }
        };
        let step = self.step.bind(py);
        let result = self.crossing.excluding(|| step.call1((actions,)))?;
        let Some((next, rewards, dones, cut_short)) = result.extract::<Option<Stepped<'_>>>()?
        else {
            return Ok(false);
        };
        let next = Argument::new("obs of step", &next);
        let rewards = Argument::new("rewards of step", &rewards);
        let dones = Argument::new("dones of step", &dones);
        let cut_short = cut_short.as_ref().map(|(rows, last)| {
            let rows = Argument::new("rows of step", rows);
            (rows, Argument::new("final_obs of step", last))
        });
        reading(py, &Unguarded, BORROWS, |(), look| {
            obs.copy_from_slice(&look.read::<f32, Ix2>(next, Some(&[n, width]))?);
            let rewards = look.read::<f64, Ix1>(rewards, Some(&[n]))?;
            outcome.rewards.copy_from_slice(&rewards);
            let dones = look.read::<bool, Ix1>(dones, Some(&[n]))?;
            outcome.terminated.copy_from_slice(dones.flags()?);
            outcome.truncated.fill(false);
            outcome.final_obs.clear();
            if let Some((rows, last)) = cut_short {
                let rows = look.read::<i64, Ix1>(rows, None)?;
                let last = look.read::<f32, Ix2>(last, Some(&[rows.len(), width]))?;
                for (&row, last) in rows.iter().zip(last.chunks_exact(width)) {
                    let env = usize::try_from(row).ok().filter(|&env| {
                        let ascending = outcome.final_obs.envs().last().is_none_or(|&e| e < env);
                        ascending && env < n && outcome.terminated[env]
                    });
                    let env = env.ok_or_else(|| not_ended(row))?;
                    outcome.terminated[env] = false;
                    outcome.truncated[env] = true;
                    outcome.final_obs.push(env, last);
                }
            }
            Ok(true)
        })
    }
}

#[cold]
fn not_ended(row: i64) -> PyErr {
    let problem = format!("holds {row}, expected ascending indices of environments that are done");
    to_py(RloxError::argument("rows of step", problem))
}
