//! A whole rollout in one call: stepping, the policy, sampling and advantages, none of it in Python.
//!
//! Environments do not know of each other, so each thread takes some of them through all the steps,
//! and they meet at the end: one fork-join a rollout, not one a step. What an environment does
//! depends on its own state, the policy and its own noise alone, hence not on the threads.

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
use crate::error::{RloxError, check_len};
use crate::memory::reserved;
use crate::pool;
use crate::training::gae::{Layout, compute_gae_batched};
use part::{Done, Part};

/// Transitions that are worth another thread: they take some 0.4 ms, handing over some 8 µs, and
/// other threads of the program want the cores, too.
const PER_THREAD: usize = 1024;
/// Environments of a thread come in multiples of the policy's tile of rows.
const TILE: usize = 8;
const _: () = assert!(TILE.is_multiple_of(LANES));

/// `n_steps` of `n_envs` environments, step-major: `x[t * n_envs + e]`.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedRollout {
    /// Observations `[(n_steps + 1) * n_envs * obs_dim]`; the last ones are there to go on from.
    pub obs: Vec<f32>,
    /// Actions `[n_steps * n_envs]`, or `[… * act_dim]` before clipping.
    pub actions: ActionBatch,
    /// Log-probabilities of the actions.
    pub log_probs: Vec<f32>,
    /// Values of the observations acted on.
    pub values: Vec<f32>,
    /// Rewards; a step truncated by the time limit alone has more, as [`collect`] says.
    pub rewards: Vec<f32>,
    /// 1 where the step ended an episode.
    pub dones: Vec<f32>,
    /// Advantages.
    pub advantages: Vec<f32>,
    /// Targets of the value function.
    pub returns: Vec<f32>,
    /// What has ended, step by step, and within a step in the order of the environments.
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

/// What the episodes under way have come to, environment by environment `[n_envs]`.
#[derive(Debug)]
pub struct Running<'a> {
    /// Sums of rewards.
    pub rewards: &'a mut [f64],
    /// Numbers of steps.
    pub lengths: &'a mut [i64],
}

/// Collects a rollout from where the environments stand.
///
/// `threads` is how many to use at most, `None` as many as pay. The reward of a truncated step is
/// raised by `gamma * V(final_obs)`, as in [`super::rollout::collect`].
///
/// # Errors
/// If `running` has another length than there are environments, they were never reset, or an action
/// or an advantage is not finite; then the environments stand where each has come to.
pub fn collect<W: PipelineWiring>(
    env: &mut EnvOf<W>,
    policy: &MlpPolicy,
    how: Collect,
    stream: Stream,
    running: Running<'_>,
    threads: Option<usize>,
) -> Result<FusedRollout, RloxError> {
    how.check_in(env)?;
    let n = how.n_steps * env.n_envs() * policy.noise_per_action();
    let noise = if policy.takes_normals() {
        stream.normals(n)?
    } else {
        stream.uniforms(n)?
    };
    collect_with_noise::<W>(env, policy, how, &noise, running, threads)
}

/// [`collect`] with the noise given, step-major: a number uniform in [0, 1) for each action of a
/// categorical policy, `act_dim` standard normal ones for each of a Gaussian.
///
/// # Errors
/// Those of [`collect`], or if `noise` has another length.
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
    let all = Done::joined(columns, how.n_steps)?;

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
#[cfg(false)] // for rustfmt, which looks into no macro
mod tests;
