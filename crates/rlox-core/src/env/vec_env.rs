//! Many copies of one environment, stepped together. Each has its own random numbers and episode.
//!
//! Autoreset is Gymnasium's same-step one. When an episode ends, the next one starts within the same step,
//! and the step returns the first observation of the new episode. The last observation of the old episode
//! is kept as `final_obs`, since a truncated episode is bootstrapped with its value.

use super::builtins::{self, Builtin};
use super::info::StepInfo;
use super::obs_store::ObsStore;
use super::physics::Bounds;
use super::spaces::{Actions, Space};
use super::stepping::{EnvBatch, Finals, Outcome, Share, Stepping};
use crate::error::{RloxError, check_len};
use crate::memory::{fits, reserved, zeros};

pub use super::members::PARALLEL_ENVS;

/// The results of a step of all environments.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchTransition<O, I> {
    /// The observations after the step. Where an episode ended, it is the first one of the next episode.
    pub obs: O,
    /// `[n_envs]`
    pub rewards: Vec<f64>,
    /// Whether the episode reached a terminal state, `[n_envs]`.
    pub terminated: Vec<bool>,
    /// Whether the episode reached its time limit, `[n_envs]`.
    pub truncated: Vec<bool>,
    /// The last observation of each episode that ended.
    pub final_obs: Finals,
    /// What each environment's step reports besides, `[n_envs]`.
    pub infos: Vec<I>,
}

/// Which environments to reset, and how. By default all are reset, and the random numbers of each go on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reset<'a> {
    /// A new seed for each environment, `[n_envs]`. With None the environment's random numbers go on.
    pub seeds: Option<&'a [Option<u128>]>,
    /// Which environments to reset, `[n_envs]`.
    pub mask: Option<&'a [bool]>,
    /// The bounds of each drawn component of the initial state, for this reset only.
    pub bounds: Option<&'a [Bounds]>,
}

/// `n_envs` copies of one environment. `S` is the form in which they are stored and stepped.
pub struct VecEnv<S: Stepping> {
    kind: Builtin<S>,
    n_envs: usize,
    envs: Box<dyn EnvBatch<S::Obs, S::Info>>,
    /// The results of the last step. Its observations are current after a reset, too.
    last: BatchTransition<S::Obs, S::Info>,
    /// Whether every environment has been reset once, so that it has a state to step from.
    started: bool,
}

impl<S: Stepping> VecEnv<S> {
    /// `n_envs` copies of the environment with the id `env_id`. The i-th is seeded with `seed + i`.
    ///
    /// # Errors
    /// If no environment has this id, `n_envs` is 0 or more than there is memory for, or the seed is
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

    /// How many bytes [`Self::new`] allocates for each environment, at least.
    fn bytes_per_env(kind: &Builtin<S>) -> usize {
        // The latest observation, and the last one of an episode.
        let observations = 2 * kind.observation_space.dim() * size_of::<f32>();
        // The seed, the reward, the two flags, and the environment's index in `Finals`.
        let rest = size_of::<(u128, f64, bool, bool, usize)>() + size_of::<S::Info>();
        kind.bytes + observations + rest
    }

    /// The id of the environment.
    pub fn env_id(&self) -> &'static str {
        self.kind.id
    }

    /// The number of environments.
    pub fn n_envs(&self) -> usize {
        self.n_envs
    }

    /// The space of one environment's observations.
    pub fn observation_space(&self) -> &Space {
        &self.kind.observation_space
    }

    /// The space of one environment's actions.
    pub fn action_space(&self) -> &Space {
        &self.kind.action_space
    }

    /// The number of steps after which an episode is truncated.
    pub fn max_episode_steps(&self) -> u32 {
        self.kind.max_episode_steps
    }

    /// The default bounds of each drawn component of an initial state.
    pub fn initial_bounds(&self) -> &'static [Bounds] {
        self.kind.initial_bounds
    }

    /// Whether every environment has been reset once, which a step requires.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// The observations after the last step or reset.
    pub fn obs(&self) -> &S::Obs {
        &self.last.obs
    }

    /// Starts new episodes, and returns the observations of all environments.
    ///
    /// # Errors
    /// If a length does not fit, bounds are not in ascending order or have no finite difference, or the
    /// mask leaves out an environment that was never reset. Then nothing is reset.
    pub fn reset(&mut self, how: Reset<'_>) -> Result<&S::Obs, RloxError> {
        let n_envs = self.n_envs;
        let bounds = how.bounds.unwrap_or(self.kind.initial_bounds);
        check_len("seed", how.seeds.map_or(n_envs, <[_]>::len), n_envs)?;
        check_len("reset_mask", how.mask.map_or(n_envs, <[_]>::len), n_envs)?;
        check_len("bounds", bounds.len(), self.kind.initial_bounds.len())?;
        if let Some((low, high)) = bounds
            .iter()
            .find(|(low, high)| !(low <= high && (high - low).is_finite()))
        {
            return Err(RloxError::argument(
                "bounds",
                format!(
                    "are {low} and {high}, expected numbers in ascending order with a finite difference"
                ),
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

    /// Steps all environments.
    ///
    /// # Errors
    /// Before the first reset, and for bad actions (see [`Actions::check`]). Then no environment moves.
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

    /// The environments in shares of `n`, so that the caller can step each share by a thread of its own.
    /// Afterwards the caller calls [`Self::observe`]. `n` is a multiple of [`super::physics::LANES`].
    pub(crate) fn shares(&mut self, n: usize) -> Result<Vec<Box<dyn Share + '_>>, RloxError> {
        self.envs.shares(n)
    }

    /// Makes [`Self::obs`] current after steps of [`Self::shares`], which write their observations to
    /// the caller's memory.
    pub(crate) fn observe(&mut self) {
        for (i, slot) in self.last.obs.slots().enumerate() {
            self.envs.observe(i, slot);
        }
    }

    /// The state of environment `i`, and the number of steps that its episode has had so far.
    ///
    /// # Errors
    /// If there is no environment `i`.
    pub fn state(&self, i: usize) -> Result<(Vec<f64>, u32), RloxError> {
        if i >= self.n_envs {
            return Err(no_such_env(i, self.n_envs));
        }
        Ok(self.envs.state(i))
    }

    /// Puts environment `i` into `state`, as if its episode had had `elapsed` steps so far.
    ///
    /// # Errors
    /// If there is no environment `i`, or `state` has another length or a number that is not finite.
    pub fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32) -> Result<(), RloxError> {
        let Some(slot) = self.last.obs.slots().nth(i) else {
            return Err(no_such_env(i, self.n_envs));
        };
        check_len("state", state.len(), self.kind.components)?;
        if let Some(at) = state.iter().position(|component| !component.is_finite()) {
            let problem = format!("is {} at index {at}, expected finite numbers", state[at]);
            return Err(RloxError::argument("state", problem));
        }
        let elapsed = elapsed.min(u32::MAX - 1); // the next step adds 1
        self.envs.set_state(i, state, elapsed);
        self.envs.observe(i, slot);
        Ok(())
    }
}

/// The seeds of `n_envs` environments: `seed`, `seed + 1`, and so on.
///
/// # Errors
/// If `seed` is `2^128 - n_envs` or more.
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
