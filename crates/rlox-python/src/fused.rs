//! `collect_rollout`: a whole rollout of an MLP policy in one call, so that no step returns to Python.

use numpy::{Ix1, Ix3};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::nn::{Mlp, PackedMlp};
use rlox_core::pipeline::fused::{self, Episode, FusedRollout, MlpPolicy, Running, Stream};
use rlox_core::pipeline::rollout::{ActionBatch, Collect};
use rlox_core::switchboard::Chosen;

use crate::arrays::{Detaching, Number, Pinned, detaching, made};
use crate::crossing::COLLECT_ROLLOUT;
use crate::env::VecEnv;
use crate::errors::{reserved, to_py};
use crate::nn::{NetworkWithParams, mlp};
use crate::numbers::size;

/// Collects ``n_steps`` of an MLP policy in native environments, from their present states: both
/// networks, sampling, log-probabilities, stepping and GAE. The GIL is released meanwhile.
///
/// Actions of a discrete space are sampled by the inverse CDF, those of a box are mean + exp(log_std) *
/// normal; the environments get these clipped to the box. Where the time limit truncates an episode
/// that has not terminated, ``gamma * V(final_obs)`` is added to its last reward. The same arguments
/// and states of the environments give the same rollout, whatever the number of threads.
///
/// Parameters
/// ----------
/// env : VecEnv
/// actor, critic : (list of int, "tanh" or "relu", ndarray of float32)
///     Widths (input, hidden..., output) of linear layers, the activation between them, and their
///     parameters in torch's order: of each layer the weight, [out, in], then the bias. The actor's
///     outputs are logits for a discrete action space, means for a box.
/// log_std : ndarray, shape (act_dim,), float32
///     Logarithms of the standard deviations; empty for a discrete action space.
/// n_steps, gamma, gae_lambda : int, float, float
/// stream : (int, int)
///     Seed and number of the stream that the random numbers come from; both in [0, 2**64).
/// running : (ndarray of float64, ndarray of int64), shape (n_envs,)
///     Sums of rewards and lengths so far of the episodes that have not ended; updated in place.
/// noise : ndarray, shape (n_steps, n_envs, 1 or act_dim), float32
///     Used instead of the stream: uniform in [0, 1) for a discrete action space, else standard
///     normals.
/// threads : int
///     The largest number of threads to use; None uses as many as pay.
///
/// Returns
/// -------
/// dict of ndarrays
///     ``obs`` float32 (n_steps + 1, n_envs, obs_dim), the last ones being those to act on next;
///     ``actions`` int64 (n_steps, n_envs) or float32 (n_steps, n_envs, act_dim), not clipped;
///     ``log_probs``, ``values``, ``rewards``, ``dones``, ``advantages``, ``returns`` float32
///     (n_steps, n_envs); and of the episodes that ended, in the order of steps, then environments:
///     ``episode_steps`` int64 (the step of the rollout), ``episode_rewards`` float64,
///     ``episode_lengths`` int64.
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, a number out of range, more steps than there is memory for, an output of the
///     networks that is not finite, arrays that share memory with one that is written to.
/// TypeError
///     An argument that is no array, or has another dtype.
/// RuntimeError
///     The environments were never reset, or are in use.
/// MemoryError
///     There is no memory for the results.
#[pyfunction]
#[pyo3(signature = (
    env, actor, critic, log_std, n_steps, gamma, gae_lambda, stream, running, noise=None,
    threads=None,
))]
#[expect(
    clippy::too_many_arguments,
    reason = "a policy, where it acts, and how to collect"
)]
pub fn collect_rollout<'py>(
    py: Python<'py>,
    env: &Bound<'py, VecEnv>,
    actor: NetworkWithParams<'py>,
    critic: NetworkWithParams<'py>,
    log_std: &Bound<'py, PyAny>,
    n_steps: i128,
    gamma: f64,
    gae_lambda: f64,
    stream: (u64, u64),
    running: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    noise: Option<Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut crossing = COLLECT_ROLLOUT.enter(0);
    let n_steps = size("n_steps", n_steps)?;
    let env = env.get();
    let running = (
        Pinned::new("running[0]", &running.0),
        Pinned::new("running[1]", &running.1),
    );
    let of_actor = Pinned::new("actor", &actor.2);
    let of_critic = Pinned::new("critic", &critic.2);
    let log_std = Pinned::new("log_std", log_std);
    let noise = noise.as_ref().map(|noise| Pinned::new("noise", noise));
    let actor = mlp("actor", &actor.0.0, &actor.1)?;
    let critic = mlp("critic", &critic.0.0, &critic.1)?;
    let how = Collect {
        n_steps,
        gamma,
        gae_lambda,
    };
    let (seed, rollout) = stream;
    let stream = Stream { seed, rollout };
    let rollout = detaching(py, &env.envs, |envs, scope| {
        let policy = MlpPolicy::new(
            network(scope, actor, &of_actor)?,
            network(scope, critic, &of_critic)?,
            scope.read::<f32, Ix1>(&log_std, None)?,
            env.obs_dim,
            &env.action_space,
        )
        .map_err(to_py)?;
        let n_envs = [env.n_envs];
        let noise_shape = [n_steps, env.n_envs, policy.noise_per_action()];
        let running = Running {
            rewards: scope.write::<f64, Ix1>(&running.0, Some(&n_envs))?,
            lengths: scope.write::<i64, Ix1>(&running.1, Some(&n_envs))?,
        };
        let noise = noise
            .as_ref()
            .map(|noise| scope.read::<f32, Ix3>(noise, Some(&noise_shape)))
            .transpose()?;
        scope
            .detach(|| match noise {
                Some(noise) => {
                    fused::collect_with_noise::<Chosen>(envs, &policy, how, noise, running, threads)
                }
                None => fused::collect::<Chosen>(envs, &policy, how, stream, running, threads),
            })
            .map_err(to_py)
    })?;
    let actions = match &rollout.actions {
        ActionBatch::Discrete(actions) => size_of_val(&actions[..]),
        ActionBatch::Continuous(actions) => size_of_val(&actions[..]),
    };
    let floats = size_of_val(&rollout.obs[..]) + 6 * size_of_val(&rollout.values[..]);
    crossing.add_bytes(floats + actions);
    to_dict(py, rollout, [n_steps, env.n_envs], None)
}

fn network(scope: &Detaching<'_>, mlp: Mlp, params: &Pinned<'_>) -> PyResult<PackedMlp> {
    let params = scope.read::<f32, Ix1>(params, Some(&[mlp.n_params()]))?;
    PackedMlp::new(mlp, params).map_err(to_py)
}

/// The rollout as arrays. `n_choices`: how many choices an action is; None for one that is an index or
/// floats.
pub(crate) fn to_dict(
    py: Python<'_>,
    rollout: FusedRollout,
    steps: [usize; 2],
    n_choices: Option<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let [n_steps, n_envs] = steps;
    let dict = made::dict(py)?;
    let obs_dim = rollout.obs.len() / ((n_steps + 1) * n_envs);
    dict.set_item(
        "obs",
        made::owned(py, rollout.obs, [n_steps + 1, n_envs, obs_dim])?,
    )?;
    let actions = match (rollout.actions, n_choices) {
        (ActionBatch::Discrete(actions), None) => made::owned(py, actions, steps)?,
        (ActionBatch::Discrete(actions), Some(choices)) => {
            made::owned(py, actions, [n_steps, n_envs, choices])?
        }
        (ActionBatch::Continuous(actions), _) => {
            let act_dim = actions.len() / (n_steps * n_envs);
            made::owned(py, actions, [n_steps, n_envs, act_dim])?
        }
    };
    dict.set_item("actions", actions)?;
    for (name, column) in [
        ("log_probs", rollout.log_probs),
        ("values", rollout.values),
        ("rewards", rollout.rewards),
        ("dones", rollout.dones),
        ("advantages", rollout.advantages),
        ("returns", rollout.returns),
    ] {
        dict.set_item(name, made::owned(py, column, steps)?)?;
    }
    let episodes = &rollout.episodes;
    dict.set_item("episode_steps", each(py, episodes, |one| one.step as i64)?)?;
    dict.set_item("episode_rewards", each(py, episodes, |one| one.reward)?)?;
    dict.set_item("episode_lengths", each(py, episodes, |one| one.length)?)?;
    Ok(dict)
}

/// An array with one number of each episode.
fn each<'py, T: Number + 'static>(
    py: Python<'py>,
    episodes: &[Episode],
    number: impl Fn(&Episode) -> T,
) -> PyResult<Bound<'py, PyAny>> {
    let mut numbers = reserved(episodes.len())?;
    numbers.extend(episodes.iter().map(number));
    made::owned(py, numbers, [episodes.len()])
}
