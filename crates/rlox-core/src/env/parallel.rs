//! Many environments stepped as one, each with its own generator and time limit.
//!
//! Autoreset is same-step: an environment whose episode ends starts the next one within that step,
//! its observation is the new episode's first, and the last one is kept as `final_obs`, without
//! which a truncated episode could not be bootstrapped.

use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::info::StepInfo;
use super::obs_store::ObsStore;
use super::spaces::{Actions, Space};
use super::{Action, Bounds, RLEnv, builtins, seeding};
use crate::error::{RloxError, check_len};

/// From here on a step is shared among threads. A built-in environment steps in some 0.1 µs and
/// handing work to Rayon costs some 8 µs: a few hundred of them break even on two cores.
pub const PARALLEL_ENVS: usize = 512;
/// Environments that a thread takes at least, so that the hand-over is paid by work.
const PER_THREAD: usize = 128;

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
    /// The last observation of each episode that has ended `[n_envs]`.
    pub final_obs: Vec<Option<Vec<f32>>>,
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

/// One environment with what it needs to go on by itself.
pub(crate) struct Member<I> {
    env: Box<dyn RLEnv<I>>,
    rng: Pcg64,
    elapsed: u32,
    limit: u32,
}

/// What a member did in a step; the fields are those of [`BatchTransition`].
pub(crate) struct Outcome<I> {
    pub(crate) reward: f64,
    pub(crate) terminated: bool,
    pub(crate) truncated: bool,
    pub(crate) final_obs: Option<Vec<f32>>,
    info: I,
}

impl<I: StepInfo> Member<I> {
    fn reset(&mut self, bounds: &[Bounds]) {
        self.env.reset(&mut self.rng, bounds);
        self.elapsed = 0;
    }

    /// Observes into `slot`.
    pub(crate) fn observe<O: ObsStore>(&self, slot: &mut O::Slot) {
        O::observe(&*self.env, slot);
    }

    /// Steps with a valid action, and observes into `slot`.
    #[inline]
    pub(crate) fn step<O: ObsStore>(
        &mut self,
        action: Action<'_>,
        slot: &mut O::Slot,
    ) -> Outcome<I> {
        let transition = self.env.step(action);
        self.elapsed += 1;
        let truncated = self.elapsed >= self.limit;
        let final_obs = (transition.terminated || truncated).then(|| {
            let last = self.env.obs();
            self.reset(self.env.initial_bounds());
            last
        });
        O::observe(&*self.env, slot);
        Outcome {
            reward: transition.reward,
            terminated: transition.terminated,
            truncated,
            final_obs,
            info: transition.info,
        }
    }
}

/// `n_envs` environments of one kind. Generic over the seams of P2 and P10.
pub struct VecEnv<O, I> {
    env_id: &'static str,
    observation_space: Space,
    action_space: Space,
    members: Vec<Member<I>>,
    last: BatchTransition<O, I>,
    /// Every environment has a state to step from.
    started: bool,
}

impl<O: ObsStore, I: StepInfo> VecEnv<O, I> {
    /// Environments called `env_id`, the i-th seeded with `seed + i`.
    pub fn new(env_id: &str, n_envs: usize, seed: u128) -> Result<Self, RloxError> {
        let (env_id, make) = builtins::find::<I>(env_id)?;
        if n_envs == 0 {
            return Err(RloxError::argument("n_envs", "is 0, expected at least 1"));
        }
        let (env, rngs) = (make(), seeds_from(seed, n_envs)?);
        let (observation_space, action_space) = (env.observation_space(), env.action_space());
        let members = rngs
            .map(|seed| {
                let env = make();
                Member {
                    limit: env.max_episode_steps(),
                    env,
                    rng: seeding::rng_from_seed(seed),
                    elapsed: 0,
                }
            })
            .collect();
        let last = BatchTransition {
            obs: O::new(n_envs, observation_space.dim()),
            rewards: vec![0.0; n_envs],
            terminated: vec![false; n_envs],
            truncated: vec![false; n_envs],
            final_obs: vec![None; n_envs],
            infos: (0..n_envs).map(|_| I::nothing()).collect(),
        };
        Ok(Self {
            env_id,
            observation_space,
            action_space,
            members,
            last,
            started: false,
        })
    }

    /// The id they were made by.
    pub fn env_id(&self) -> &'static str {
        self.env_id
    }

    /// How many they are.
    pub fn n_envs(&self) -> usize {
        self.members.len()
    }

    /// Space of one environment's observations.
    pub fn observation_space(&self) -> &Space {
        &self.observation_space
    }

    /// Space of one environment's actions.
    pub fn action_space(&self) -> &Space {
        &self.action_space
    }

    /// Whether there is a state to step from.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Observations as of the last step or reset.
    pub fn obs(&self) -> &O {
        &self.last.obs
    }

    /// Starts new episodes; returns the observations of all environments.
    pub fn reset(&mut self, how: Reset<'_>) -> Result<&O, RloxError> {
        let n_envs = self.n_envs();
        let bounds = how.bounds.unwrap_or(self.members[0].env.initial_bounds());
        check_len("seed", how.seeds.map_or(n_envs, <[_]>::len), n_envs)?;
        check_len("reset_mask", how.mask.map_or(n_envs, <[_]>::len), n_envs)?;
        check_len("bounds", bounds.len(), self.members[0].env.state().len())?;
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
        for (i, (member, slot)) in self
            .members
            .iter_mut()
            .zip(self.last.obs.slots())
            .enumerate()
        {
            if how.mask.is_none_or(|mask| mask[i]) {
                if let Some(seed) = how.seeds.and_then(|seeds| seeds[i]) {
                    member.rng = seeding::rng_from_seed(seed);
                }
                member.reset(bounds);
                O::observe(&*member.env, slot);
            }
        }
        self.started = true;
        Ok(&self.last.obs)
    }

    /// Steps all environments, or none where an action is bad.
    pub fn step(&mut self, actions: Actions<'_>) -> Result<&BatchTransition<O, I>, RloxError> {
        if !self.started {
            return Err(RloxError::InvalidState(
                "step before the first reset; call reset() first".into(),
            ));
        }
        actions.check(&self.action_space, self.n_envs())?;
        let dim = self.action_space.dim();
        let parallel = self.n_envs() >= PARALLEL_ENVS;
        let BatchTransition {
            obs,
            rewards,
            terminated,
            truncated,
            final_obs,
            infos,
        } = &mut self.last;
        if parallel {
            (
                &mut self.members,
                obs.par_slots(),
                rewards,
                terminated,
                truncated,
                final_obs,
                infos,
            )
                .into_par_iter()
                .with_min_len(PER_THREAD)
                .enumerate()
                .for_each(|(i, (member, slot, reward, term, trunc, last, info))| {
                    let outcome = member.step::<O>(actions.of(i, dim), slot);
                    (*reward, *term, *trunc) =
                        (outcome.reward, outcome.terminated, outcome.truncated);
                    (*last, *info) = (outcome.final_obs, outcome.info);
                });
        } else {
            for (i, (member, slot)) in self.members.iter_mut().zip(obs.slots()).enumerate() {
                let outcome = member.step::<O>(actions.of(i, dim), slot);
                rewards[i] = outcome.reward;
                terminated[i] = outcome.terminated;
                truncated[i] = outcome.truncated;
                final_obs[i] = outcome.final_obs;
                infos[i] = outcome.info;
            }
        }
        Ok(&self.last)
    }

    /// The environments one by one, for a caller that steps them by itself. What it leaves them in
    /// is observed by [`Self::observe`].
    pub(crate) fn members_mut(&mut self) -> &mut [Member<I>] {
        &mut self.members
    }

    /// Observes every environment as it stands.
    pub(crate) fn observe(&mut self) {
        for (member, slot) in self.members.iter().zip(self.last.obs.slots()) {
            member.observe::<O>(slot);
        }
    }

    /// The state of environment `i` and the steps of its episode so far.
    pub fn state(&self, i: usize) -> Result<(&[f64], u32), RloxError> {
        let n_envs = self.n_envs();
        match self.members.get(i) {
            Some(member) => Ok((member.env.state(), member.elapsed)),
            None => Err(no_such_env(i, n_envs)),
        }
    }

    /// Puts environment `i` into `state`, `elapsed` steps into its episode.
    pub fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32) -> Result<(), RloxError> {
        let n_envs = self.n_envs();
        let Some((member, slot)) = self.members.iter_mut().zip(self.last.obs.slots()).nth(i) else {
            return Err(no_such_env(i, n_envs));
        };
        check_len("state", state.len(), member.env.state().len())?;
        member.env.state_mut().copy_from_slice(state);
        member.elapsed = elapsed;
        O::observe(&*member.env, slot);
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
