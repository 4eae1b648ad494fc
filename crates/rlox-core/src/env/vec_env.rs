//! Many environments stepped as one, each with its own generator and time limit.
//!
//! Autoreset is same-step: an environment whose episode ends starts the next one within that step,
//! its observation is the new episode's first, and the last one is kept as `final_obs`, without
//! which a truncated episode could not be bootstrapped.

use super::builtins::{self, Builtin};
use super::info::StepInfo;
use super::obs_store::ObsStore;
use super::physics::Bounds;
use super::spaces::{Actions, Space};
use super::stepping::{EnvBatch, Finals, Outcome, Share, Stepping};
use crate::error::{RloxError, check_len};
use crate::memory::{fits, reserved, zeros};

pub use super::members::PARALLEL_ENVS;

/// What all environments did in a step.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchTransition<O, I> {
    /// Observations after the step; the first ones of the next episode where one has ended.
    pub obs: O,
    /// Rewards `[n_envs]`.
    pub rewards: Vec<f64>,
    /// Whether the episode reached a terminal state `[n_envs]`.
    pub terminated: Vec<bool>,
    /// Whether the episode reached its time limit `[n_envs]`.
    pub truncated: Vec<bool>,
    /// The last observation of each episode that has ended.
    pub final_obs: Finals,
    /// Further facts `[n_envs]`.
    pub infos: Vec<I>,
}

/// Which environments to reset, and how; by default all, each from its own stream as it stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reset<'a> {
    /// New seeds `[n_envs]`; `None` lets the stream of that environment go on.
    pub seeds: Option<&'a [Option<u128>]>,
    /// The environments to reset `[n_envs]`.
    pub mask: Option<&'a [bool]>,
    /// Where to draw the components of the initial state from, for this reset.
    pub bounds: Option<&'a [Bounds]>,
}

/// `n_envs` environments of one kind, held in the form `S`.
pub struct VecEnv<S: Stepping> {
    kind: Builtin<S>,
    n_envs: usize,
    envs: Box<dyn EnvBatch<S::Obs, S::Info>>,
    last: BatchTransition<S::Obs, S::Info>,
    /// Every environment has a state to step from.
    started: bool,
}

impl<S: Stepping> VecEnv<S> {
    /// Environments called `env_id`, the i-th seeded with `seed + i`.
    ///
    /// # Errors
    /// If none is called so, for no environment or more than there is memory for, and for a seed of
    /// `2^128 - n_envs` or more.
    pub fn new(env_id: &str, n_envs: usize, seed: u128) -> Result<Self, RloxError> {
        let kind = builtins::find::<S>(env_id)?;
        if n_envs == 0 {
            return Err(RloxError::argument("n_envs", "is 0, expected at least 1"));
        }
        let obs_dim = kind.observation_space.dim();
        let bytes = Self::bytes_per_env(&kind);
        if !fits::<u8>(n_envs, bytes) {
            let problem = format!(
                "is {n_envs}, and so many environments of {bytes} bytes do not fit into memory; \
                 choose a smaller one"
            );
            return Err(RloxError::argument("n_envs", problem));
        }
        let (mut seeds, mut infos) = (reserved(n_envs)?, reserved(n_envs)?);
        seeds.extend(seeds_from(seed, n_envs)?);
        infos.extend((0..n_envs).map(|_| S::Info::nothing()));
        let last = BatchTransition {
            obs: S::Obs::new(n_envs, obs_dim)?,
            rewards: zeros(n_envs)?,
            terminated: zeros(n_envs)?,
            truncated: zeros(n_envs)?,
            final_obs: Finals::new(n_envs, obs_dim)?,
            infos,
        };
        Ok(Self {
            envs: (kind.make)(&seeds)?,
            kind,
            n_envs,
            last,
            started: false,
        })
    }

    /// What [`Self::new`] puts into memory for an environment, at least.
    fn bytes_per_env(kind: &Builtin<S>) -> usize {
        // The latest observation and an episode's last.
        let observations = 2 * kind.observation_space.dim() * size_of::<f32>();
        // A seed, a reward, two flags, and the number of an environment whose episode ended.
        let rest = size_of::<(u128, f64, bool, bool, usize)>() + size_of::<S::Info>();
        kind.bytes + observations + rest
    }

    /// The id they were made by.
    pub fn env_id(&self) -> &'static str {
        self.kind.id
    }

    /// How many they are.
    pub fn n_envs(&self) -> usize {
        self.n_envs
    }

    /// Space of one environment's observations.
    pub fn observation_space(&self) -> &Space {
        &self.kind.observation_space
    }

    /// Space of one environment's actions.
    pub fn action_space(&self) -> &Space {
        &self.kind.action_space
    }

    /// Steps after which an episode is truncated.
    pub fn max_episode_steps(&self) -> u32 {
        self.kind.max_episode_steps
    }

    /// Where the components of an initial state are drawn from, unless a reset says otherwise.
    pub fn initial_bounds(&self) -> &'static [Bounds] {
        self.kind.initial_bounds
    }

    /// Whether there is a state to step from.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Observations as of the last step or reset.
    pub fn obs(&self) -> &S::Obs {
        &self.last.obs
    }

    /// Starts new episodes; returns the observations of all environments.
    pub fn reset(&mut self, how: Reset<'_>) -> Result<&S::Obs, RloxError> {
        let n_envs = self.n_envs;
        let bounds = how.bounds.unwrap_or(self.kind.initial_bounds);
        check_len("seed", how.seeds.map_or(n_envs, <[_]>::len), n_envs)?;
        check_len("reset_mask", how.mask.map_or(n_envs, <[_]>::len), n_envs)?;
        check_len("bounds", bounds.len(), self.kind.initial_bounds.len())?;
        if let Some((low, high)) = bounds
            .iter()
            .find(|(low, high)| !(low <= high && low.is_finite() && high.is_finite()))
        {
            return Err(RloxError::argument(
                "bounds",
                format!("are {low} and {high}, expected finite numbers in ascending order"),
            ));
        }
        if !self.started && how.mask.is_some_and(|mask| mask.contains(&false)) {
            return Err(RloxError::InvalidState(
                "reset_mask leaves environments out that were never reset; reset all of them first"
                    .into(),
            ));
        }
        for (i, slot) in self.last.obs.slots().enumerate() {
            if how.mask.is_none_or(|mask| mask[i]) {
                if let Some(seed) = how.seeds.and_then(|seeds| seeds[i]) {
                    self.envs.reseed(i, seed);
                }
                self.envs.reset(i, bounds);
                self.envs.observe(i, slot);
            }
        }
        self.started = true;
        Ok(&self.last.obs)
    }

    /// Steps all environments, or none where an action is bad.
    pub fn step(
        &mut self,
        actions: Actions<'_>,
    ) -> Result<&BatchTransition<S::Obs, S::Info>, RloxError> {
        if !self.started {
            return Err(RloxError::InvalidState(
                "step before the first reset; call reset() first".into(),
            ));
        }
        actions.check(&self.kind.action_space, self.n_envs)?;
        let BatchTransition {
            obs,
            rewards,
            terminated,
            truncated,
            final_obs,
            infos,
        } = &mut self.last;
        let outcome = Outcome {
            rewards,
            terminated,
            truncated,
            final_obs,
        };
        self.envs.step(actions, obs, infos, outcome)?;
        Ok(&self.last)
    }

    /// The environments, `n` at a time, for a caller that steps them by itself and then calls
    /// [`Self::observe`]; `n` as [`EnvBatch::shares`] has it.
    pub(crate) fn shares(&mut self, n: usize) -> Result<Vec<Box<dyn Share + '_>>, RloxError> {
        self.envs.shares(n)
    }

    /// Observes every environment as it stands.
    pub(crate) fn observe(&mut self) {
        for (i, slot) in self.last.obs.slots().enumerate() {
            self.envs.observe(i, slot);
        }
    }

    /// The state of environment `i` and the steps of its episode so far.
    pub fn state(&self, i: usize) -> Result<(Vec<f64>, u32), RloxError> {
        if i >= self.n_envs {
            return Err(no_such_env(i, self.n_envs));
        }
        Ok(self.envs.state(i))
    }

    /// Puts environment `i` into `state`, `elapsed` steps into its episode.
    pub fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32) -> Result<(), RloxError> {
        let Some(slot) = self.last.obs.slots().nth(i) else {
            return Err(no_such_env(i, self.n_envs));
        };
        check_len("state", state.len(), self.kind.components)?;
        if let Some(at) = state.iter().position(|component| !component.is_finite()) {
            let problem = format!("is {} at index {at}, expected finite numbers", state[at]);
            return Err(RloxError::argument("state", problem));
        }
        let elapsed = elapsed.min(u32::MAX - 1); // the next step is counted, too
        self.envs.set_state(i, state, elapsed);
        self.envs.observe(i, slot);
        Ok(())
    }
}

/// `seed`, `seed + 1`, …, one an environment.
pub fn seeds_from(
    seed: u128,
    n_envs: usize,
) -> Result<impl ExactSizeIterator<Item = u128>, RloxError> {
    match seed.checked_add(n_envs as u128) {
        Some(_) => Ok((0..n_envs).map(move |i| seed + i as u128)),
        None => Err(RloxError::argument(
            "seed",
            format!("is {seed}, expected below 2^128 - n_envs"),
        )),
    }
}

fn no_such_env(i: usize, n_envs: usize) -> RloxError {
    RloxError::argument("i", format!("is {i}, expected 0 to {}", n_envs - 1))
}
