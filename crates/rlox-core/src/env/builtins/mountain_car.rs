//! A car driven out of a valley by an engine too weak for the slope: Moore, "Efficient Memory-based
//! Learning for Robot Control" (1990), as Gymnasium's v0 has it.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use crate::env::physics::{Bounds, Flags, LANES, Moved, Physics};
use crate::env::spaces::Space;
use crate::env::trig;
use crate::real::Real;

/// Position and velocity, here and in `mountain_car_continuous`.
pub(super) type State = [[f64; LANES]; 2];

const LEFT_END: f64 = -1.2;
const RIGHT_END: f64 = 0.6;
const GOAL: f64 = 0.5;
const MAX_SPEED: f64 = 0.07;
const POWER: f64 = 0.001;
pub(super) const SLOPE: f64 = 0.0025;

/// `MountainCar-v0`. The state is the position and the velocity; the unit of time is a step.
#[derive(Debug)]
pub enum MountainCar {}

impl Physics for MountainCar {
    const ID: &'static str = "MountainCar-v0";
    const MAX_EPISODE_STEPS: u32 = 200;
    /// The bounds of the position. The velocity starts at zero.
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-0.6, -0.4)];
    type State = State;
    type Action = i64;
    type Rows = [[f32; 2]; LANES];

    /// The observation is the state.
    fn observation_space() -> Space {
        space()
    }

    /// 0 drives to the left, 2 to the right, 1 lets it roll.
    fn action_space() -> Space {
        Space::Discrete(3)
    }

    #[inline(always)]
    fn step(
        [mut position, mut velocity]: State,
        _elapsed: &[u32; LANES],
        actions: &[i64; LANES],
    ) -> Moved<State> {
        let (_, cos) = trig::sin_cos(&position.map(|x| 3.0 * x));
        let mut terminated = Flags::default();
        for l in 0..LANES {
            let push = (actions[l] - 1) as f64 * POWER + cos[l] * -SLOPE;
            let reached;
            (position[l], velocity[l], reached) = driven(position[l], velocity[l], push, GOAL);
            terminated[l] = u64::from(reached);
        }
        Moved {
            state: [position, velocity],
            rewards: [-1.0; LANES],
            terminated,
        }
    }

    #[inline(always)]
    fn rows(state: &State) -> Self::Rows {
        rows(state)
    }
}

/// The space of the observations, position and velocity, of both cars.
pub(super) fn space() -> Space {
    let fastest = MAX_SPEED as f32;
    Space::Box {
        low: vec![LEFT_END as f32, -fastest],
        high: vec![RIGHT_END as f32, fastest],
    }
}

/// The observations of a state.
#[inline(always)]
pub(super) fn rows([position, velocity]: &State) -> [[f32; 2]; LANES] {
    let mut rows = [[0.0; 2]; LANES];
    for l in 0..LANES {
        rows[l] = [position[l] as f32, velocity[l] as f32];
    }
    rows
}

/// Position and velocity after a step in which `push` changes the velocity, and whether the car has
/// reached `goal`. It is computed in the precision of `T`.
#[inline(always)]
pub(super) fn driven<T: Real>(position: T, velocity: T, push: T, goal: f64) -> (T, T, bool) {
    let (left_end, fastest) = (T::from_f64(LEFT_END), T::from_f64(MAX_SPEED));
    let velocity = (velocity + push).clamp(-fastest, fastest);
    let position = (position + velocity).clamp(left_end, T::from_f64(RIGHT_END));
    let stopped = (position == left_end) & (velocity < T::zero());
    let velocity = if stopped { T::zero() } else { velocity };
    let reached = (position >= T::from_f64(goal)) & (velocity >= T::zero());
    (position, velocity, reached)
}
