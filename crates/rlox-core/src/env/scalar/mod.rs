//! A single environment as a trait object, [`RLEnv`]. P19's baseline, with either form of P2 and P10,
//! steps these.
//!
//! CartPole and Pendulum have their equations here a second time, for one environment and with the
//! standard library's sine and cosine, because P2, P10 and P19 were measured with this code. Every other
//! environment is a [`OneLane`].

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

/// The result of a step, without the observation. It does not say whether the episode is truncated: that
/// follows from the number of its steps, which the caller counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Stepped<I> {
    /// Reward of the step.
    pub reward: f64,
    /// Whether the step reached a terminal state.
    pub terminated: bool,
    /// What the step reports besides (P10's seam).
    pub info: I,
}

/// One environment with a state of real numbers, kept in f64 and observed in f32.
pub trait RLEnv<I: StepInfo>: Send {
    /// The state, component by component.
    fn state(&self) -> &[f64];

    /// The state, to be overwritten.
    fn state_mut(&mut self) -> &mut [f64];

    /// Draws a new initial state. `bounds` has (low, high) of each component that is drawn.
    fn reset(&mut self, rng: &mut Pcg64, bounds: &[Bounds]) {
        for (component, &(low, high)) in self.state_mut().iter_mut().zip(bounds) {
            *component = seeding::uniform(rng, low, high);
        }
    }

    /// Advances the state by one step. `elapsed` is the number of steps that the episode has had so far.
    fn step(&mut self, action: Action<'_>, elapsed: u32) -> Stepped<I>;

    /// The observation of the state, in a new vector.
    fn obs(&self) -> Vec<f32>;

    /// Writes the observation to `out`, which has exactly its length.
    fn write_obs(&self, out: &mut [f32]);
}

/// One copy of any environment. Since [`Physics`] steps eight lanes, all eight get the same state and
/// action, and the results of lane 0 are used.
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
    /// The state, the same in all eight lanes.
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
            terminated: moved.terminated[0] != 0,
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
