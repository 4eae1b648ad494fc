//! P19's optimised form: eight environments are stepped together. Their states lie component by component,
//! so that one vector instruction does an operation for all eight.
//!
//! [`EnvBatch::step`] uses one thread: a step of eight environments takes tens of nanoseconds, but handing
//! work to another thread takes some 8 µs.

use rand_pcg::Pcg64;

use super::info::OptionalInfo;
use super::obs_store::FlatObs;
use super::physics::{Bounds, LANES, Physics, Rows, alike};
use super::seeding;
use super::spaces::{Actions, LaneAction};
use super::stepping::{EnvBatch, Outcome, Share, Stepping};
use crate::RloxError;
use crate::memory::reserved;
use crate::simd::{Instructions, kernel};

/// Names the form of [`Stepping`] that ships: eight environments at a time.
#[derive(Debug)]
pub enum Lanes {}

/// Up to eight environments, each in a lane of its own. If there are fewer, the other lanes are stepped
/// with them, and what comes of it is ignored.
#[repr(align(64))]
struct Eight<P: Physics> {
    state: P::State,
    /// The number of steps that each lane's episode has had so far.
    elapsed: [u32; LANES],
    /// The random numbers of each environment. They are seldom used, and lie elsewhere in memory, so that
    /// the states of many environments lie side by side.
    rngs: Vec<Pcg64>,
}

/// One step of the environments in `all`, with autoreset. Observations are written to `obs`,
/// `[n_envs * obs_dim]`.
///
/// There are two passes: the first steps all environments, the second starts new episodes where one ended.
/// In a single pass, the branch on whether an episode ended would come right after the long computation
/// that decides it. The processor would have to predict it, and each misprediction would delay the next
/// eight environments.
#[inline(always)]
#[allow(
    clippy::extra_unused_type_parameters,
    reason = "arithmetic that every level rounds alike"
)]
fn advance<I: Instructions, P: Physics>(
    all: &mut [Eight<P>],
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
    // Eights that are complete are written as arrays, whose length the compiler knows.
    let (actions, few_actions) = actions.as_chunks();
    let (paid, few_paid) = rewards.as_chunks_mut();
    let (ended, few_ended) = terminated.as_chunks_mut();
    let (cut, few_cut) = truncated.as_chunks_mut();
    let (complete, incomplete) = all.split_at_mut(paid.len());
    let mut rows = obs.chunks_exact_mut(LANES * P::Rows::WIDTH);
    let flags = ended.iter_mut().zip(cut);
    let columns = paid.iter_mut().zip(flags).zip(rows.by_ref());
    for ((eight, actions), ((paid, (ended, cut)), rows)) in
        complete.iter_mut().zip(actions).zip(columns)
    {
        rows.copy_from_slice(eight.step(actions, paid, ended, cut).flat());
    }
    if let [last] = incomplete {
        let (n, few_rows) = (few_paid.len(), rows.into_remainder());
        let mut actions = [P::Action::default(); LANES];
        actions[..n].copy_from_slice(few_actions);
        let (mut paid, mut ended, mut cut) = Default::default();
        let rows = last.step(&actions, &mut paid, &mut ended, &mut cut);
        few_paid.copy_from_slice(&paid[..n]);
        few_ended.copy_from_slice(&ended[..n]);
        few_cut.copy_from_slice(&cut[..n]);
        few_rows.copy_from_slice(&rows.flat()[..few_rows.len()]);
        (n..LANES)
            .filter(|&l| ended[l] | cut[l])
            .for_each(|l| last.clear(l));
    }
    final_obs.clear();
    let flags = terminated.chunks(LANES).zip(truncated.chunks(LANES));
    for (i, (eight, (terminated, truncated))) in all.iter_mut().zip(flags).enumerate() {
        if any(terminated) | any(truncated) {
            for l in (0..terminated.len()).filter(|&l| terminated[l] | truncated[l]) {
                let env = i * LANES + l;
                let row = &mut obs[env * P::Rows::WIDTH..][..P::Rows::WIDTH];
                final_obs.push(env, row);
                eight.start(l, P::INITIAL_BOUNDS);
                eight.observe(l, row);
            }
        }
    }
}

/// Whether one of the flags is set. There are up to eight; eight are compared at once.
#[inline(always)]
fn any(flags: &[bool]) -> bool {
    match flags.first_chunk() {
        Some(eight) => *eight != [false; LANES],
        None => flags.contains(&true),
    }
}

kernel! {
    /// Steps all environments: [`advance`], compiled for each instruction set.
    fn step_all<P: Physics>(
        all: &mut [Eight<P>], actions: &[P::Action], obs: &mut [f32], outcome: Outcome<'_>,
    ) = advance;
}

impl<P: Physics> Eight<P> {
    /// Steps all lanes, without autoreset; returns the observations.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "loops over lanes are written to be vectorised"
    )]
    fn step(
        &mut self,
        actions: &[P::Action; LANES],
        rewards: &mut [f64; LANES],
        terminated: &mut [bool; LANES],
        truncated: &mut [bool; LANES],
    ) -> P::Rows {
        let moved = P::step(self.state, &self.elapsed, actions);
        self.state = moved.state;
        *rewards = moved.rewards;
        for l in 0..LANES {
            terminated[l] = moved.terminated[l] != 0;
        }
        for l in 0..LANES {
            self.elapsed[l] += 1;
        }
        for l in 0..LANES {
            truncated[l] = self.elapsed[l] >= P::MAX_EPISODE_STEPS;
        }
        P::rows(&moved.state)
    }

    /// Starts an episode in lane `l`.
    #[inline(never)]
    fn start(&mut self, l: usize, bounds: &[Bounds]) {
        for (c, component) in self.state.as_mut().iter_mut().enumerate() {
            component[l] = match bounds.get(c) {
                Some(&(low, high)) => P::kept(seeding::uniform(&mut self.rngs[l], low, high)),
                None => 0.0,
            };
        }
        self.elapsed[l] = 0;
    }

    /// Sets a lane without an environment to a state of zeros. Such a lane is stepped with the others, and
    /// must not reach angles that sine and cosine take long for.
    fn clear(&mut self, l: usize) {
        for component in self.state.as_mut() {
            component[l] = 0.0;
        }
        self.elapsed[l] = 0;
    }

    /// Writes the observation of lane `l` to `slot`.
    ///
    /// It is computed from a copy of the state with lane `l` in every lane. So the compiler leaves out the
    /// other seven lanes, and no vector is read that had one of its elements written just before, for which
    /// the processor would have to wait.
    #[inline(always)]
    fn observe(&self, l: usize, slot: &mut [f32]) {
        let state = alike::<P>(|c| self.state.as_ref()[c][l]);
        slot.copy_from_slice(P::rows(&state).row(0));
    }
}

impl Stepping for Lanes {
    type Obs = FlatObs;
    type Info = OptionalInfo;

    fn bytes_per_env<P: Physics>() -> usize {
        size_of::<Eight<P>>().div_ceil(LANES) + size_of::<Pcg64>()
    }

    fn make<P: Physics>(
        seeds: &[u128],
    ) -> Result<Box<dyn EnvBatch<FlatObs, OptionalInfo>>, RloxError> {
        let mut all = reserved(seeds.len().div_ceil(LANES))?;
        for seeds in seeds.chunks(LANES) {
            let mut rngs = reserved(seeds.len())?;
            rngs.extend(seeds.iter().map(|&seed| seeding::rng_from_seed(seed)));
            all.push(Eight::<P> {
                state: P::State::default(),
                elapsed: [0; LANES],
                rngs,
            });
        }
        Ok(Box::new(all))
    }
}

impl<P: Physics> EnvBatch<FlatObs, OptionalInfo> for Vec<Eight<P>> {
    fn reseed(&mut self, i: usize, seed: u128) {
        self[i / LANES].rngs[i % LANES] = seeding::rng_from_seed(seed);
    }

    fn reset(&mut self, i: usize, bounds: &[Bounds]) {
        self[i / LANES].start(i % LANES, bounds);
    }

    fn state(&self, i: usize) -> (Vec<f64>, u32) {
        let (eight, l) = (&self[i / LANES], i % LANES);
        let components = eight.state.as_ref().iter();
        let state = components.map(|component| component[l]).collect();
        (state, eight.elapsed[l])
    }

    fn set_state(&mut self, i: usize, state: &[f64], elapsed: u32) {
        let (eight, l) = (&mut self[i / LANES], i % LANES);
        for (component, &value) in eight.state.as_mut().iter_mut().zip(state) {
            component[l] = value;
        }
        eight.elapsed[l] = elapsed;
    }

    fn observe(&self, i: usize, slot: &mut [f32]) {
        self[i / LANES].observe(i % LANES, slot);
    }

    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut FlatObs,
        _infos: &mut [OptionalInfo],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError> {
        (&mut self[..]).step(actions, obs.values_mut(), outcome)
    }

    fn shares(&mut self, n: usize) -> Result<Vec<Box<dyn Share + '_>>, RloxError> {
        let mut shares: Vec<Box<dyn Share + '_>> = reserved(self.len().div_ceil(n / LANES))?;
        for share in self.chunks_mut(n / LANES) {
            shares.push(Box::new(share));
        }
        Ok(shares)
    }
}

impl<P: Physics> Share for &mut [Eight<P>] {
    fn step(
        &mut self,
        actions: Actions<'_>,
        obs: &mut [f32],
        outcome: Outcome<'_>,
    ) -> Result<(), RloxError> {
        step_all(self, P::Action::all(actions)?, obs, outcome);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
