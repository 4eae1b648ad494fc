//! Environments eight by eight, component by component, stepped by one instruction for all eight.
//!
//! No threads: a step takes some nanoseconds an environment, and handing work over as long as a
//! thousand of them.

use rand_pcg::Pcg64;

use super::builtins::{CartPole, Kind, Pendulum, cartpole, pendulum};
use super::info::OptionalInfo;
use super::obs_store::FlatObs;
use super::spaces::Actions;
use super::stepping::{Outcome, Stepping};
use super::{Bounds, seeding};
use crate::RloxError;
use crate::memory::reserved;
use crate::simd::Instructions;

/// Environments held together: as many as a register of AVX-512 holds numbers.
pub(crate) const LANES: usize = 8;

/// Of every component of the state, that of each environment.
pub(crate) type State = [[f64; LANES]; 4];

/// Up to eight environments of one kind.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Lanes {
    state: State,
    elapsed: [u32; LANES],
    kind: Kind,
    /// One an environment; apart, so that the states of many environments lie side by side.
    rngs: Vec<Pcg64>,
}

/// What an environment of `OBS` observed numbers does, for eight of it.
pub(crate) trait Physics<const OBS: usize> {
    /// An action.
    type Action: Copy + Default;
    /// Steps after which an episode is truncated.
    const MAX_EPISODE_STEPS: u32;
    /// Where initial states are drawn from.
    const INITIAL_BOUNDS: &'static [Bounds];

    /// Advances the state.
    fn step(state: &mut State, actions: [Self::Action; LANES]) -> Moved;

    /// The observations.
    fn rows(state: &State) -> [[f32; OBS]; LANES];
}

/// What a step gives besides the state.
pub(crate) struct Moved {
    pub(crate) rewards: [f64; LANES],
    pub(crate) terminated: [bool; LANES],
}

/// A step of all environments of `all`, with autoreset.
///
/// All of them move before any episode that ended is looked at: whether one did is known at the end of
/// a long chain of instructions, and to guess it wrong there is to begin the next chain late.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]
#[allow(
    clippy::extra_unused_type_parameters,
    reason = "arithmetic that every level rounds alike"
)]
pub(crate) fn advance<I: Instructions, P: Physics<OBS>, const OBS: usize>(
    all: &mut [Lanes],
    actions: &[P::Action],
    obs: &mut [f32],
    outcome: Outcome<'_>,
) {
    let Outcome {
        rewards,
        terminated,
        truncated,
        final_obs,
    } = outcome;
    let flags = (terminated.chunks_mut(LANES)).zip(truncated.chunks_mut(LANES));
    let columns = obs
        .chunks_mut(LANES * OBS)
        .zip(rewards.chunks_mut(LANES))
        .zip(flags);
    let inputs = all.iter_mut().zip(actions.chunks(LANES));
    let mut ended = [false; LANES];
    for ((lanes, actions), ((obs, rewards), (terminated, truncated))) in inputs.zip(columns) {
        let moved = P::step(&mut lanes.state, padded(actions));
        let mut cut = [false; LANES];
        for l in 0..LANES {
            lanes.elapsed[l] += 1;
            cut[l] = lanes.elapsed[l] >= P::MAX_EPISODE_STEPS;
            ended[l] = moved.terminated[l] | cut[l];
        }
        put(&moved.rewards, rewards);
        put(&moved.terminated, terminated);
        put(&cut, truncated);
        put(P::rows(&lanes.state).as_flattened(), obs);
    }
    if let Some(last) = all.last_mut() {
        (last.rngs.len()..LANES)
            .filter(|&l| ended[l])
            .for_each(|l| last.clear(l));
    }
    final_obs.clear();
    let flags = terminated.chunks(LANES).zip(truncated.chunks(LANES));
    for (i, (lanes, (terminated, truncated))) in all.iter_mut().zip(flags).enumerate() {
        if any(terminated) | any(truncated) {
            for l in (0..terminated.len()).filter(|&l| terminated[l] | truncated[l]) {
                let env = i * LANES + l;
                let row = &mut obs[env * OBS..][..OBS];
                final_obs.push(env, row);
                lanes.start(l, P::INITIAL_BOUNDS);
                row.copy_from_slice(&P::rows(&lanes.state)[l]);
            }
        }
    }
}

/// Whether one of eight, or of fewer, is set.
#[inline(always)]
fn any(flags: &[bool]) -> bool {
    match flags.first_chunk() {
        Some(eight) => *eight != [false; LANES],
        None => flags.contains(&true),
    }
}

/// The actions of eight environments, where there may be fewer.
#[inline(always)]
fn padded<T: Copy + Default>(actions: &[T]) -> [T; LANES] {
    actions.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [T::default(); LANES];
        padded[..actions.len()].copy_from_slice(actions);
        padded
    })
}

/// Copies what there is room for. The length of eight is known to the compiler.
#[inline(always)]
fn put<T: Copy>(values: &[T], out: &mut [T]) {
    if out.len() == values.len() {
        out.copy_from_slice(values);
    } else {
        out.copy_from_slice(&values[..out.len()]);
    }
}

impl Lanes {
    /// Starts an episode.
    #[inline(never)]
    fn start(&mut self, at: usize, bounds: &[Bounds]) {
        for (component, &(low, high)) in self.state.iter_mut().zip(bounds) {
            component[at] = seeding::uniform(&mut self.rngs[at], low, high);
        }
        self.elapsed[at] = 0;
    }

    /// Puts a lane that has no environment back to rest: it moves with the others.
    fn clear(&mut self, at: usize) {
        for component in &mut self.state {
            component[at] = 0.0;
        }
        self.elapsed[at] = 0;
    }

    /// Components that the state has.
    fn components(&self) -> usize {
        match self.kind {
            Kind::CartPole => 4,
            Kind::Pendulum => 2,
        }
    }
}

impl Stepping for Lanes {
    const ENVS: usize = LANES;
    type Obs = FlatObs;
    type Info = OptionalInfo;

    fn new(kind: Kind, seeds: &[u128]) -> Result<Self, RloxError> {
        let mut rngs = reserved(seeds.len())?;
        rngs.extend(seeds.iter().map(|&seed| seeding::rng_from_seed(seed)));
        Ok(Self {
            state: State::default(),
            elapsed: [0; LANES],
            kind,
            rngs,
        })
    }

    fn reseed(&mut self, at: usize, seed: u128) {
        self.rngs[at] = seeding::rng_from_seed(seed);
    }

    fn reset(&mut self, at: usize, bounds: &[Bounds]) {
        self.start(at, bounds);
    }

    fn state(&self, at: usize) -> (Vec<f64>, u32) {
        let components = self.state.iter().take(self.components());
        let state = components.map(|component| component[at]).collect();
        (state, self.elapsed[at])
    }

    fn set_state(&mut self, at: usize, state: &[f64], elapsed: u32) {
        for (component, &value) in self.state.iter_mut().zip(state) {
            component[at] = value;
        }
        self.elapsed[at] = elapsed;
    }

    fn observe(&self, at: usize, slot: &mut [f32]) {
        match self.kind {
            Kind::CartPole => slot.copy_from_slice(&CartPole::rows(&self.state)[at]),
            Kind::Pendulum => slot.copy_from_slice(&Pendulum::rows(&self.state)[at]),
        }
    }

    fn step(
        all: &mut [Self],
        actions: Actions<'_>,
        obs: &mut FlatObs,
        _infos: &mut [OptionalInfo],
        outcome: Outcome<'_>,
    ) {
        Self::step_flat(all, actions, obs.values_mut(), outcome);
    }

    fn step_flat(all: &mut [Self], actions: Actions<'_>, obs: &mut [f32], outcome: Outcome<'_>) {
        let Some(first) = all.first() else { return };
        match (first.kind, actions) {
            (Kind::CartPole, Actions::Discrete(actions)) => {
                cartpole::step_lanes(all, actions, obs, outcome);
            }
            (Kind::Pendulum, Actions::Continuous(torques)) => {
                pendulum::step_lanes(all, torques, obs, outcome);
            }
            // They are refused before: to move by them would be to move another environment.
            _ => debug_assert!(false, "actions of another kind of environment"),
        }
    }
}

#[cfg(test)]
mod tests;
