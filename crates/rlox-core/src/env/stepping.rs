//! P19's seam: how many copies of an environment are stored and stepped.

use super::info::StepInfo;
use super::obs_store::ObsStore;
use super::physics::{Bounds, Physics};
use super::spaces::Actions;
use crate::RloxError;
use crate::memory::reserved;

/// A form of P19 for [`super::vec_env::VecEnv`]. The types that implement this trait only name a form.
pub trait Stepping: 'static {
    /// How observations are stored.
    type Obs: ObsStore;
    /// What a step reports besides.
    type Info: StepInfo;

    /// How many bytes each environment takes, at least, without its observations and results.
    fn bytes_per_env<P: Physics>() -> usize;

    /// Makes a copy of `P` for each seed. They must be reset before the first step.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn make<P: Physics>(
        seeds: &[u128],
    ) -> Result<Box<dyn EnvBatch<Self::Obs, Self::Info>>, RloxError>;
}

/// Many copies of one environment, each with its own random numbers and episode.
///
/// It is used as a trait object: the caller does not know which [`Physics`] it steps, and a step is one
/// virtual call for all environments.
pub trait EnvBatch<O: ObsStore, I>: Send {
    /// Gives environment `i` new random numbers, which follow from `seed`.
    fn reseed(&mut self, i: usize, seed: u128);

    /// Starts an episode of environment `i`, in a state drawn within `bounds`.
    fn reset(&mut self, i: usize, bounds: &[Bounds]);

    /// The state of environment `i`, and the number of steps that its episode has had so far.
    fn state(&self, i: usize) -> (Vec<f64>, u32);

    /// Puts environment `i` into `state`, as if its episode had had `elapsed` steps so far. `state` has a
    /// number for each component.
    fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32);

    /// Writes the observation of environment `i` to `slot`.
    fn observe(&self, i: usize, slot: &mut O::Slot);

    /// Steps all environments, with autoreset. The caller has called [`Actions::check`].
    ///
    /// # Errors
    /// If the actions are of the other kind, discrete or continuous. Then no environment moves.
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut O,
        infos: &mut [I],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError>;

    /// The environments in shares of `n`, of which the last may be smaller, so that each share can be
    /// stepped by a thread of its own. `n` is a multiple of [`super::physics::LANES`].
    ///
    /// # Errors
    /// If there is no memory for the list.
    fn shares(&mut self, n: usize) -> Result<Vec<Box<dyn Share + '_>>, RloxError>;
}

/// Some of the environments of an [`EnvBatch`].
pub trait Share: Send {
    /// Steps these environments as [`EnvBatch::step`] does. The observations are written to `obs`,
    /// `[n_envs * obs_dim]`.
    ///
    /// # Errors
    /// As [`EnvBatch::step`].
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut [f32],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError>;
}

/// The memory that a step of `n_envs` environments writes its results to, except the observations.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// `[n_envs]`
    pub rewards: &'a mut [f64],
    /// `[n_envs]`
    pub terminated: &'a mut [bool],
    /// `[n_envs]`
    pub truncated: &'a mut [bool],
    /// The step empties it first.
    pub final_obs: &'a mut Finals,
}

/// The last observation of each episode that ended in a step, in the order of the environments.
#[derive(Debug, Clone, PartialEq)]
pub struct Finals {
    obs_dim: usize,
    /// The indices of the environments whose episodes ended, ascending.
    envs: Vec<usize>,
    /// Their last observations, `[envs.len() * obs_dim]`.
    obs: Vec<f32>,
}

impl Finals {
    /// No observations yet, with memory for one of each environment.
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

    /// A copy.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn try_clone(&self) -> Result<Self, RloxError> {
        let (mut envs, mut obs) = (reserved(self.envs.len())?, reserved(self.obs.len())?);
        envs.extend_from_slice(&self.envs);
        obs.extend_from_slice(&self.obs);
        let obs_dim = self.obs_dim;
        Ok(Self { obs_dim, envs, obs })
    }

    /// Empties it, but keeps its memory.
    pub fn clear(&mut self) {
        self.envs.clear();
        self.obs.clear();
    }

    /// Adds the last observation of environment `env`. Environments are added in ascending order.
    pub fn push(&mut self, env: usize, obs: &[f32]) {
        self.envs.push(env);
        self.obs.extend_from_slice(obs);
    }

    /// The indices of the environments whose episodes ended, ascending.
    pub fn envs(&self) -> &[usize] {
        &self.envs
    }

    /// The last observations of these environments, `[envs().len() * obs_dim]`.
    pub fn obs(&self) -> &[f32] {
        &self.obs
    }

    /// Each environment whose episode ended, with its last observation.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[f32])> {
        let rows = self.obs.chunks_exact(self.obs_dim);
        self.envs.iter().copied().zip(rows)
    }

    /// The last observation of environment `env`, if its episode ended.
    pub fn get(&self, env: usize) -> Option<&[f32]> {
        let at = self.envs.binary_search(&env).ok()?;
        self.obs.chunks_exact(self.obs_dim).nth(at)
    }
}
