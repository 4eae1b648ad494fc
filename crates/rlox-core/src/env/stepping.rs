//! P19's seam: how environments of one kind are held, and what steps them.

use super::info::StepInfo;
use super::obs_store::ObsStore;
use super::physics::{Bounds, Physics};
use super::spaces::Actions;
use crate::RloxError;
use crate::memory::reserved;

/// A form of holding environments: the one thing that varies between variants of
/// [`super::vec_env::VecEnv`]. A type that implements it is a name of that form.
pub trait Stepping: 'static {
    /// Where observations are put.
    type Obs: ObsStore;
    /// Further facts about a step.
    type Info: StepInfo;

    /// What an environment takes in memory, at least, without observations and outcome.
    fn bytes_per_env<P: Physics>() -> usize;

    /// Environments of one kind, with these seeds; without a state as yet.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn make<P: Physics>(
        seeds: &[u128],
    ) -> Result<Box<dyn EnvBatch<Self::Obs, Self::Info>>, RloxError>;
}

/// Environments of one kind, each with its own generator and time limit. What kind they are is known
/// behind this table of methods, which is called once a step for all of them.
pub trait EnvBatch<O: ObsStore, I>: Send {
    /// A new stream of random numbers for environment `i`.
    fn reseed(&mut self, i: usize, seed: u128);

    /// Starts an episode of environment `i`, from a state drawn within `bounds`.
    fn reset(&mut self, i: usize, bounds: &[Bounds]);

    /// The state of environment `i`, and the steps of its episode so far.
    fn state(&self, i: usize) -> (Vec<f64>, u32);

    /// Puts environment `i` into `state`, which has its length, `elapsed` steps into its episode.
    fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32);

    /// Observes environment `i` into `slot`.
    fn observe(&self, i: usize, slot: &mut O::Slot);

    /// Steps all of them, with actions that [`Actions::check`] has let through.
    ///
    /// # Errors
    /// If it has not, and they are found to be of another kind; then none has moved.
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut O,
        infos: &mut [I],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError>;

    /// All of them, `n` at a time and fewer at the end, for threads that step on their own. `n` is a
    /// multiple of [`super::physics::LANES`].
    ///
    /// # Errors
    /// If there is no memory for the list.
    fn shares(&mut self, n: usize) -> Result<Vec<Box<dyn Share + '_>>, RloxError>;
}

/// Some of the environments of an [`EnvBatch`].
pub trait Share: Send {
    /// Steps them as [`EnvBatch::step`] does, with observations `[n_envs * obs_dim]` in the caller's memory.
    ///
    /// # Errors
    /// As there.
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut [f32],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError>;
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
