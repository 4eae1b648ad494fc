//! P19's baseline: environments are stepped one after the other, each a trait object of its own. P2 and
//! P10 vary how their observations are stored and what a step reports besides.

use std::marker::PhantomData;

use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::info::StepInfo;
use super::obs_store::{FlatObs, ObsStore};
use super::physics::{Bounds, LANES, Physics};
use super::scalar::RLEnv;
use super::seeding;
use super::spaces::{Action, Actions};
use super::stepping::{EnvBatch, Outcome, Share, Stepping};
use crate::memory::reserved;
use crate::{RloxError, pool};

/// The number of environments from which on several threads share a step. A built-in environment steps
/// in some 0.1 µs, and handing work to Rayon costs some 8 µs: with a few hundred environments two
/// threads are about as fast as one.
pub const PARALLEL_ENVS: usize = 512;
/// The least number of environments that a thread takes, so that stepping them takes longer than handing
/// them over.
const PER_THREAD: usize = 128;

/// One environment with its random numbers and its time limit. `O` says how observations are stored (P2's
/// seam), `I` what a step reports besides (P10's seam). As an implementation of [`Stepping`], the type
/// stands for P19's baseline, which has a `Member` for each environment.
pub struct Member<O, I> {
    env: Box<dyn RLEnv<I>>,
    rng: Pcg64,
    /// The number of steps that the episode has had so far.
    elapsed: u32,
    /// The number of steps after which it is truncated.
    limit: u32,
    initial_bounds: &'static [Bounds],
    store: PhantomData<fn() -> O>,
}

/// The result of a member's step.
struct MemberStep<I> {
    reward: f64,
    terminated: bool,
    truncated: bool,
    final_obs: Option<Vec<f32>>,
    info: I,
}

impl<O: ObsStore, I: StepInfo> Member<O, I> {
    /// Starts an episode.
    fn start(&mut self, bounds: &[Bounds]) {
        self.env.reset(&mut self.rng, bounds);
        self.elapsed = 0;
    }

    /// Steps with a valid action, starts a new episode if this one ended, and writes the observation to
    /// `slot`, which may be of another store than `O`.
    #[inline]
    fn step_one<S: ObsStore>(&mut self, action: Action<'_>, slot: &mut S::Slot) -> MemberStep<I> {
        let transition = self.env.step(action, self.elapsed);
        self.elapsed += 1;
        let truncated = self.elapsed >= self.limit;
        let final_obs = (transition.terminated || truncated).then(|| {
            let last = self.env.obs();
            self.start(self.initial_bounds);
            last
        });
        S::observe(&*self.env, slot);
        MemberStep {
            reward: transition.reward,
            terminated: transition.terminated,
            truncated,
            final_obs,
            info: transition.info,
        }
    }

    /// Steps all members one after the other, on this thread. `keep(i, info)` gets what the step of member
    /// `i` reports besides.
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
    type Obs = O;
    type Info = I;

    fn bytes_per_env<P: Physics>() -> usize {
        size_of::<Self>() + size_of::<P::State>() / LANES
    }

    fn make<P: Physics>(seeds: &[u128]) -> Result<Box<dyn EnvBatch<O, I>>, RloxError> {
        let mut all = reserved(seeds.len())?;
        all.extend(seeds.iter().map(|&seed| Self {
            env: P::alone(),
            rng: seeding::rng_from_seed(seed),
            elapsed: 0,
            limit: P::MAX_EPISODE_STEPS,
            initial_bounds: P::INITIAL_BOUNDS,
            store: PhantomData,
        }));
        Ok(Box::new(all))
    }
}

impl<O: ObsStore, I: StepInfo> EnvBatch<O, I> for Vec<Member<O, I>> {
    fn reseed(&mut self, i: usize, seed: u128) {
        self[i].rng = seeding::rng_from_seed(seed);
    }

    fn reset(&mut self, i: usize, bounds: &[Bounds]) {
        self[i].start(bounds);
    }

    fn state(&self, i: usize) -> (Vec<f64>, u32) {
        (self[i].env.state().to_vec(), self[i].elapsed)
    }

    fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32) {
        self[i].env.state_mut().copy_from_slice(state);
        self[i].elapsed = elapsed;
    }

    fn observe(&self, i: usize, slot: &mut O::Slot) {
        O::observe(&*self[i].env, slot);
    }

    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut O,
        infos: &mut [I],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError> {
        if self.len() < PARALLEL_ENVS || pool::threads() == 1 {
            Member::step_in_turn::<O>(self, actions, obs.slots(), outcome, |i, info| {
                infos[i] = info;
            });
            return Ok(());
        }
        let dim = actions.per_env(self.len());
        let ended: Vec<Option<Vec<f32>>> = (
            &mut self[..],
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
        Ok(())
    }

    fn shares(&mut self, n: usize) -> Result<Vec<Box<dyn Share + '_>>, RloxError> {
        let mut shares: Vec<Box<dyn Share + '_>> = reserved(self.len().div_ceil(n))?;
        for share in self.chunks_mut(n) {
            shares.push(Box::new(share));
        }
        Ok(shares)
    }
}

impl<O: ObsStore, I: StepInfo> Share for &mut [Member<O, I>] {
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut [f32],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError> {
        let obs_dim = obs.len() / self.len();
        let slots = obs.chunks_exact_mut(obs_dim);
        Member::step_in_turn::<FlatObs>(self, actions, slots, outcome, |_, _| {});
        Ok(())
    }
}
