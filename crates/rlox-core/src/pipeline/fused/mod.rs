//! A whole rollout in one call: the policy, sampling, stepping and advantages, without Python.
//!
//! The environments are cut into parts (`part`), and each thread takes a part through all steps. So
//! there is one fork-join for a rollout, not one for each step. An environment depends on its own
//! state, the policy and its own noise alone, so the result does not depend on the number of threads.

mod noise;
mod part;
mod policy;

use rayon::prelude::*;

pub use noise::Stream;
pub use policy::MlpPolicy;

use super::rollout::{ActionBatch, Collect};
use super::{EnvOf, PipelineWiring};
use crate::env::obs_store::ObsStore;
use crate::env::physics::LANES;
use crate::env::stepping::Share;
use crate::error::{RloxError, check_len};
use crate::memory::{reserved, zeros};
use crate::pool;
use crate::training::TrainingWiring;
use crate::training::gae::{Layout, compute_gae_batched};
use part::{Collected, Part};

/// Transitions for which one more thread pays: they take some 0.4 ms, and handing them over some 8 µs.
/// It is no less, since other threads of the program want the cores, too.
const PER_THREAD: usize = 1024;
/// The number of environments of a part is a multiple of this: the rows of the policy's largest tile.
const TILE: usize = 8;
const _: () = assert!(TILE.is_multiple_of(LANES));

/// A rollout of `n_steps` of `n_envs` environments. All columns are step-major: step t of environment e
/// is element `t * n_envs + e`.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedRollout {
    /// Observations, `[n_steps + 1, n_envs, obs_dim]`. The last ones are those to act on next.
    pub obs: Vec<f32>,
    /// Actions, `[n_steps, n_envs]`, of several choices `[n_steps, n_envs, choices]`, or `[n_steps,
    /// n_envs, act_dim]` before clipping.
    pub actions: ActionBatch,
    /// Log-probabilities of the actions, `[n_steps, n_envs]`, as are the columns below.
    pub log_probs: Vec<f32>,
    /// Values of the observations acted on.
    pub values: Vec<f32>,
    /// Rewards; those of truncated steps have the bootstrap added, as [`collect`] says.
    pub rewards: Vec<f32>,
    /// 1 where the step ended an episode, else 0.
    pub dones: Vec<f32>,
    /// Advantages by GAE.
    pub advantages: Vec<f32>,
    /// Advantages plus values, the targets of the value function.
    pub returns: Vec<f32>,
    /// The episodes that ended, in the order of steps, then environments.
    pub episodes: Vec<Episode>,
}

/// An episode that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episode {
    /// The step of the rollout that ended it.
    pub step: usize,
    /// Sum of its rewards.
    pub reward: f64,
    /// Number of its steps.
    pub length: i64,
}

/// The episodes that have not ended yet, `[n_envs]`. A rollout goes on from these numbers and updates
/// them.
#[derive(Debug)]
pub struct Running<'a> {
    /// The sum of rewards so far.
    pub rewards: &'a mut [f64],
    /// The number of steps so far.
    pub lengths: &'a mut [i64],
}

/// Collects a rollout from the present states of the environments. `stream` gives the random numbers.
///
/// `threads` is the largest number of threads to use; None uses as many as pay. Where an episode is
/// truncated and not terminated, `gamma * V(final_obs)` is added to the reward of its last step, as in
/// [`super::rollout::collect`].
///
/// # Errors
/// If `running` has another length than there are environments, they were never reset, `how` is out of
/// range, there is no memory, or an action or an advantage is not finite. In the last case the
/// environments have been stepped already.
pub fn collect<W: PipelineWiring>(
    env: &mut EnvOf<W>,
    policy: &MlpPolicy,
    how: Collect,
    stream: Stream,
    running: Running<'_>,
    threads: Option<usize>,
) -> Result<FusedRollout, RloxError> {
    how.check_in(env)?;
    let noise = stream.noise(policy, how.n_steps * env.n_envs())?;
    collect_with_noise::<W>(env, policy, how, &noise, running, threads)
}

/// [`collect`] in environments that are not this crate's. `envs` steps them all, and `obs` are their
/// present observations, `[n_envs, obs_dim]`. One thread takes all steps. Episodes are not counted.
///
/// `envs` needs to report a final observation only where the value of it is added to the reward: where
/// an episode is truncated and not terminated.
///
/// # Errors
/// If `how` is out of range, `obs` is not rows for the policy, there is no memory, an action or an
/// advantage is not finite, or those of `envs`.
pub fn collect_from<W: TrainingWiring>(
    envs: Box<dyn Share + '_>,
    obs: &[f32],
    policy: &MlpPolicy,
    how: Collect,
    stream: Stream,
) -> Result<FusedRollout, RloxError> {
    let obs_dim = policy.actor.mlp().n_inputs();
    let n_envs = (obs.len() / obs_dim).max(1);
    check_len("obs", obs.len(), n_envs * obs_dim)?;
    let columns = policy.noise_per_action() + 6; // with the action of as many numbers
    how.check_rows(n_envs, (obs_dim + 2 * columns) * size_of::<f32>())?;
    let noise = stream.noise(policy, how.n_steps * n_envs)?;
    let (mut rewards, mut lengths) = (zeros(n_envs)?, zeros(n_envs)?);
    let running = Running {
        rewards: &mut rewards,
        lengths: &mut lengths,
    };
    let all = Part {
        policy,
        how,
        envs,
        obs,
        first: 0,
        n_envs,
        noise: &noise,
        running,
    };
    let collected = Collected {
        episodes: Vec::new(),
        ..all.run()?
    };
    with_advantages::<W>(collected, how)
}

/// [`collect`] with given noise, `[n_steps, n_envs, noise_per_action]`: a number uniform in [0, 1) for
/// each choice or bit, for a Gaussian policy `act_dim` standard normals.
///
/// # Errors
/// Those of [`collect`], or if `noise` has another length or holds a number that is out of range.
pub fn collect_with_noise<W: PipelineWiring>(
    env: &mut EnvOf<W>,
    policy: &MlpPolicy,
    how: Collect,
    noise: &[f32],
    running: Running<'_>,
    threads: Option<usize>,
) -> Result<FusedRollout, RloxError> {
    how.check_in(env)?;
    let n_envs = env.n_envs();
    check_len("running rewards", running.rewards.len(), n_envs)?;
    check_len("running lengths", running.lengths.len(), n_envs)?;
    check_len(
        "noise",
        noise.len(),
        how.n_steps * n_envs * policy.noise_per_action(),
    )?;
    let uniform = |x: &f32| (0.0..1.0).contains(x);
    if let Some(x) = noise
        .iter()
        .find(|x| !policy.takes_normals() && !uniform(x))
    {
        let problem = format!("holds {x}, expected numbers in [0, 1)");
        return Err(RloxError::argument("noise", problem));
    }
    if !env.is_started() {
        let problem = "a rollout before the first reset; call reset() first";
        return Err(RloxError::InvalidState(problem.into()));
    }

    let worth = how.n_steps * n_envs / PER_THREAD;
    let threads = threads.unwrap_or_else(|| match worth {
        0 | 1 => 1,
        _ => worth.min(pool::threads()),
    });
    let size = n_envs.div_ceil(threads.max(1)).next_multiple_of(TILE);
    let obs_dim = env.observation_space().dim();
    let mut obs = reserved(n_envs * obs_dim)?;
    env.obs().rows().for_each(|row| obs.extend_from_slice(row));
    let n_parts = n_envs.div_ceil(size);
    let parts = env
        .shares(size)?
        .into_iter()
        .zip(obs.chunks(size * obs_dim))
        .zip(running.rewards.chunks_mut(size))
        .zip(running.lengths.chunks_mut(size))
        .enumerate()
        .map(|(i, (((envs, obs), rewards), lengths))| Part {
            policy,
            how,
            envs,
            obs,
            first: i * size,
            n_envs,
            noise,
            running: Running { rewards, lengths },
        });
    let mut columns = reserved(n_parts)?;
    if n_parts > 1 && pool::threads() > 1 {
        let mut work = reserved(n_parts)?;
        work.extend(parts);
        let done = work.into_par_iter().map(Part::run);
        done.collect_into_vec(&mut columns);
    } else {
        columns.extend(parts.map(Part::run));
    }
    env.observe();
    with_advantages::<W>(Collected::joined(columns, how.n_steps)?, how)
}

/// The rollout of which all steps have been collected.
fn with_advantages<W: TrainingWiring>(
    all: Collected,
    how: Collect,
) -> Result<FusedRollout, RloxError> {
    let (advantages, returns) = compute_gae_batched::<W, _>(
        &all.rewards,
        &all.values,
        &all.dones,
        &all.last_values,
        how.gamma,
        how.gae_lambda,
        Layout::StepMajor,
    )?;
    Ok(FusedRollout {
        obs: all.obs,
        actions: all.actions,
        log_probs: all.log_probs,
        values: all.values,
        rewards: all.rewards,
        dones: all.dones,
        advantages,
        returns,
        episodes: all.episodes,
    })
}

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
