//! P19's seam: how environments of one kind are held, and what steps them.

use super::Bounds;
use super::builtins::Kind;
use super::info::StepInfo;
use super::obs_store::ObsStore;
use super::spaces::Actions;
use crate::RloxError;
use crate::memory::reserved;

/// One or several environments held together, each with its own generator and time limit. The one
/// thing that varies between variants of [`super::parallel::VecEnv`].
pub trait Stepping: Sized + Send + 'static {
    /// Environments held together; the last of a batch may hold fewer.
    const ENVS: usize;
    /// Where observations are put.
    type Obs: ObsStore;
    /// Further facts about a step.
    type Info: StepInfo;

    /// Environments of a kind, with these seeds, at most [`Self::ENVS`]; without a state as yet.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn new(kind: Kind, seeds: &[u128]) -> Result<Self, RloxError>;

    /// A new stream of random numbers for environment `at`.
    fn reseed(&mut self, at: usize, seed: u128);

    /// Starts an episode of environment `at`, from a state drawn within `bounds`.
    fn reset(&mut self, at: usize, bounds: &[Bounds]);

    /// The state of environment `at`, and the steps of its episode so far.
    fn state(&self, at: usize) -> (Vec<f64>, u32);

    /// Puts environment `at` into `state`, which has its length, `elapsed` steps into its episode.
    fn set_state(&mut self, at: usize, state: &[f64], elapsed: u32);

    /// Observes environment `at` into `slot`.
    fn observe(&self, at: usize, slot: &mut <Self::Obs as ObsStore>::Slot);

    /// Steps the environments of `all`, in their order, with actions that have been checked.
    fn step(
        all: &mut [Self],
        actions: Actions<'_>,
        obs: &mut Self::Obs,
        infos: &mut [Self::Info],
        outcome: Outcome<'_>,
    );

    /// The same for some of the environments, whose observations `[n_envs * obs_dim]` and outcome
    /// lie in the caller's memory.
    fn step_flat(all: &mut [Self], actions: Actions<'_>, obs: &mut [f32], outcome: Outcome<'_>);
}

/// Where a step of `n_envs` environments puts what it gives besides the observations.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// `[n_envs]`
    pub rewards: &'a mut [f64],
    /// `[n_envs]`
    pub terminated: &'a mut [bool],
    /// `[n_envs]`
    pub truncated: &'a mut [bool],
    /// Emptied first.
    pub final_obs: &'a mut Finals,
}

/// The last observations of the episodes that ended in a step, in the order of the environments.
#[derive(Debug, Clone, PartialEq)]
pub struct Finals {
    obs_dim: usize,
    envs: Vec<usize>,
    obs: Vec<f32>,
}

impl Finals {
    /// None, with room for one an environment.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(n_envs: usize, obs_dim: usize) -> Result<Self, RloxError> {
        Ok(Self {
            obs_dim,
            envs: reserved(n_envs)?,
            obs: reserved(n_envs.saturating_mul(obs_dim))?,
        })
    }

    /// The same, in memory of its own.
    ///
    /// # Errors
    /// If there is none.
    pub fn try_clone(&self) -> Result<Self, RloxError> {
        let (mut envs, mut obs) = (reserved(self.envs.len())?, reserved(self.obs.len())?);
        envs.extend_from_slice(&self.envs);
        obs.extend_from_slice(&self.obs);
        let obs_dim = self.obs_dim;
        Ok(Self { obs_dim, envs, obs })
    }

    /// Forgets them; the memory stays.
    pub fn clear(&mut self) {
        self.envs.clear();
        self.obs.clear();
    }

    /// Adds that of environment `env`, which comes after those already here.
    pub fn push(&mut self, env: usize, obs: &[f32]) {
        self.envs.push(env);
        self.obs.extend_from_slice(obs);
    }

    /// The environments whose episodes ended.
    pub fn envs(&self) -> &[usize] {
        &self.envs
    }

    /// Their last observations `[envs().len() * obs_dim]`.
    pub fn obs(&self) -> &[f32] {
        &self.obs
    }

    /// Both, one by one.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[f32])> {
        let rows = self.obs.chunks_exact(self.obs_dim);
        self.envs.iter().copied().zip(rows)
    }

    /// That of environment `env`, if its episode ended.
    pub fn get(&self, env: usize) -> Option<&[f32]> {
        let at = self.envs.binary_search(&env).ok()?;
        self.obs.chunks_exact(self.obs_dim).nth(at)
    }
}
