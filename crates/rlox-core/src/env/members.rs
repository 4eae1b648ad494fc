//! Environments one by one, each behind a box of its own.

use std::marker::PhantomData;

use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::builtins::Kind;
use super::info::StepInfo;
use super::obs_store::{FlatObs, ObsStore};
use super::spaces::Actions;
use super::stepping::{Outcome, Stepping};
use super::{Action, Bounds, RLEnv, seeding};
use crate::{RloxError, pool};

/// From here on a step is shared among threads. A built-in environment steps in some 0.1 µs and
/// handing work to Rayon costs some 8 µs: a few hundred of them break even on two cores.
pub const PARALLEL_ENVS: usize = 512;
/// Environments that a thread takes at least, so that the hand-over is paid by work.
const PER_THREAD: usize = 128;

/// One environment with what it needs to go on by itself. Generic over the seams of P2 and P10.
pub struct Member<O, I> {
    env: Box<dyn RLEnv<I>>,
    rng: Pcg64,
    elapsed: u32,
    limit: u32,
    store: PhantomData<fn() -> O>,
}

/// What a member did in a step.
struct Done<I> {
    reward: f64,
    terminated: bool,
    truncated: bool,
    final_obs: Option<Vec<f32>>,
    info: I,
}

impl<O: ObsStore, I: StepInfo> Member<O, I> {
    /// Steps with a valid action, and observes into a slot of any store.
    #[inline]
    fn step_one<S: ObsStore>(&mut self, action: Action<'_>, slot: &mut S::Slot) -> Done<I> {
        let transition = self.env.step(action);
        self.elapsed += 1;
        let truncated = self.elapsed >= self.limit;
        let final_obs = (transition.terminated || truncated).then(|| {
            let last = self.env.obs();
            self.reset(0, self.env.initial_bounds());
            last
        });
        S::observe(&*self.env, slot);
        Done {
            reward: transition.reward,
            terminated: transition.terminated,
            truncated,
            final_obs,
            info: transition.info,
        }
    }

    /// One after the other, by this thread.
    fn step_in_turn<'a, S: ObsStore>(
        all: &mut [Self],
        actions: Actions<'_>,
        slots: impl Iterator<Item = &'a mut S::Slot>,
        outcome: Outcome<'_>,
        mut keep: impl FnMut(usize, I),
    ) {
        outcome.final_obs.clear();
        let dim = actions.per_env(all.len());
        for (i, (member, slot)) in all.iter_mut().zip(slots).enumerate() {
            let done = member.step_one::<S>(actions.of(i, dim), slot);
            outcome.rewards[i] = done.reward;
            outcome.terminated[i] = done.terminated;
            outcome.truncated[i] = done.truncated;
            if let Some(last) = done.final_obs {
                outcome.final_obs.push(i, &last);
            }
            keep(i, done.info);
        }
    }
}

impl<O: ObsStore, I: StepInfo> Stepping for Member<O, I> {
    const ENVS: usize = 1;
    type Obs = O;
    type Info = I;

    fn new(kind: Kind, seeds: &[u128]) -> Result<Self, RloxError> {
        let env = kind.make::<I>();
        Ok(Self {
            limit: env.max_episode_steps(),
            env,
            rng: seeding::rng_from_seed(seeds[0]),
            elapsed: 0,
            store: PhantomData,
        })
    }

    fn reseed(&mut self, _at: usize, seed: u128) {
        self.rng = seeding::rng_from_seed(seed);
    }

    fn reset(&mut self, _at: usize, bounds: &[Bounds]) {
        self.env.reset(&mut self.rng, bounds);
        self.elapsed = 0;
    }

    fn state(&self, _at: usize) -> (Vec<f64>, u32) {
        (self.env.state().to_vec(), self.elapsed)
    }

    fn set_state(&mut self, _at: usize, state: &[f64], elapsed: u32) {
        self.env.state_mut().copy_from_slice(state);
        self.elapsed = elapsed;
    }

    fn observe(&self, _at: usize, slot: &mut O::Slot) {
        O::observe(&*self.env, slot);
    }

    fn step(
        all: &mut [Self],
        actions: Actions<'_>,
        obs: &mut O,
        infos: &mut [I],
        outcome: Outcome<'_>,
    ) {
        if all.len() < PARALLEL_ENVS || pool::threads() == 1 {
            return Self::step_in_turn::<O>(all, actions, obs.slots(), outcome, |i, info| {
                infos[i] = info;
            });
        }
        let dim = actions.per_env(all.len());
        let ended: Vec<Option<Vec<f32>>> = (
            all,
            obs.par_slots(),
            outcome.rewards,
            outcome.terminated,
            outcome.truncated,
            infos,
        )
            .into_par_iter()
            .with_min_len(PER_THREAD)
            .enumerate()
            .map(|(i, (member, slot, reward, term, trunc, info))| {
                let done = member.step_one::<O>(actions.of(i, dim), slot);
                (*reward, *term, *trunc) = (done.reward, done.terminated, done.truncated);
                *info = done.info;
                done.final_obs
            })
            .collect();
        outcome.final_obs.clear();
        for (i, last) in ended.iter().enumerate() {
            if let Some(last) = last {
                outcome.final_obs.push(i, last);
            }
        }
    }

    fn step_flat(all: &mut [Self], actions: Actions<'_>, obs: &mut [f32], outcome: Outcome<'_>) {
        let obs_dim = obs.len() / all.len();
        let slots = obs.chunks_exact_mut(obs_dim);
        Self::step_in_turn::<FlatObs>(all, actions, slots, outcome, |_, _| {});
    }
}
