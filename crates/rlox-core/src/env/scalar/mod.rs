//! One environment alone, behind a table of methods: what the form before P2, P10 and P19 is made of.
//!
//! CartPole and Pendulum state their equations here a second time, for one environment and with the
//! library's sine and cosine, because the records of P2, P10 and P19 were measured with them. Every
//! other environment is a [`OneLane`].

mod cartpole;
mod pendulum;

pub use cartpole::CartPole;
pub use pendulum::Pendulum;

use std::marker::PhantomData;

use rand_pcg::Pcg64;

use super::info::StepInfo;
use super::physics::{Bounds, LANES, Physics, Rows, alike, components};
use super::seeding;
use super::spaces::{Action, LaneAction};

/// What a step gives besides the observation. The time limit is no part of it: whoever counts the
/// steps truncates.
#[derive(Debug, Clone, PartialEq)]
pub struct Stepped<I> {
    /// Reward of the step.
    pub reward: f64,
    /// Whether the step reached a terminal state.
    pub terminated: bool,
    /// Further facts about the step (P10's seam).
    pub info: I,
}

/// One environment with a state of real numbers, kept in f64 and observed in f32.
pub trait RLEnv<I: StepInfo>: Send {
    /// The state, component by component.
    fn state(&self) -> &[f64];

    /// The state, to be written to.
    fn state_mut(&mut self) -> &mut [f64];

    /// Draws a new initial state from `bounds`, one pair a component.
    fn reset(&mut self, rng: &mut Pcg64, bounds: &[Bounds]) {
        for (component, &(low, high)) in self.state_mut().iter_mut().zip(bounds) {
            *component = seeding::uniform(rng, low, high);
        }
    }

    /// Advances the state by one step; `elapsed` are the steps of the episode so far.
    fn step(&mut self, action: Action<'_>, elapsed: u32) -> Stepped<I>;

    /// The state as the agent sees it.
    fn obs(&self) -> Vec<f32>;

    /// The same, written to `out`, which has room for it and no more.
    fn write_obs(&self, out: &mut [f32]);
}

/// Any environment, stepped as eight equal ones of which one is looked at.
pub struct OneLane<P: Physics> {
    state: Vec<f64>,
    of: PhantomData<fn() -> P>,
}

impl<P: Physics> Default for OneLane<P> {
    fn default() -> Self {
        Self {
            state: vec![0.0; components::<P>()],
            of: PhantomData,
        }
    }
}

impl<P: Physics> OneLane<P> {
    /// Eight environments in this state.
    fn eight(&self) -> P::State {
        alike::<P>(|c| self.state[c])
    }
}

impl<P: Physics, I: StepInfo> RLEnv<I> for OneLane<P> {
    fn state(&self) -> &[f64] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.state
    }

    fn reset(&mut self, rng: &mut Pcg64, bounds: &[Bounds]) {
        self.state.fill(0.0);
        for (component, &(low, high)) in self.state.iter_mut().zip(bounds) {
            *component = P::kept(seeding::uniform(rng, low, high));
        }
    }

    fn step(&mut self, action: Action<'_>, elapsed: u32) -> Stepped<I> {
        let action = P::Action::one(action).unwrap_or_default();
        let moved = P::step(self.eight(), &[elapsed; LANES], &[action; LANES]);
        for (component, value) in moved.state.as_ref().iter().zip(&mut self.state) {
            *value = component[0];
        }
        Stepped {
            reward: moved.rewards[0],
            terminated: moved.terminated[0],
            info: I::nothing(),
        }
    }

    fn obs(&self) -> Vec<f32> {
        P::rows(&self.eight()).row(0).to_vec()
    }

    fn write_obs(&self, out: &mut [f32]) {
        out.copy_from_slice(P::rows(&self.eight()).row(0));
    }
}
