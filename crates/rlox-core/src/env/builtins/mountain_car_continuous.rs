//! A car driven out of a valley by an engine too weak for the slope, with a throttle: Gymnasium's
//! Continuous_MountainCarEnv.
//!
//! Gymnasium keeps the state in float64 until the first step of an episode and in float32 from then on;
//! and a throttle beyond its bounds becomes a Python float, which NumPy takes for a float32 only when it
//! meets one. What is computed in which precision shows in the last place of the observations.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use super::mountain_car::{SLOPE, State, driven, rows, space};
use crate::env::physics::{Bounds, LANES, Moved, Physics};
use crate::env::spaces::Space;
use crate::env::trig;

const GOAL: f64 = 0.45;
const POWER: f64 = 0.0015;

/// `MountainCarContinuous-v0`; the state is the position and the velocity, a step being the unit of time.
#[derive(Debug)]
pub enum MountainCarContinuous {}

impl Physics for MountainCarContinuous {
    const ID: &'static str = "MountainCarContinuous-v0";
    const MAX_EPISODE_STEPS: u32 = 999;
    /// Of the position; the car stands.
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-0.6, -0.4)];
    type State = State;
    type Action = [f32; 1];
    type Rows = [[f32; 2]; LANES];

    /// The state.
    fn observation_space() -> Space {
        space()
    }

    /// The throttle; beyond the bounds it is clipped for the engine, but paid for in full.
    fn action_space() -> Space {
        Space::symmetric(vec![1.0])
    }

    #[inline(always)]
    fn step(
        [position, velocity]: State,
        elapsed: &[u32; LANES],
        throttles: &[[f32; 1]; LANES],
    ) -> Moved<State> {
        let mut thrice = [0.0; LANES];
        for l in 0..LANES {
            let single = f64::from(3.0 * position[l] as f32);
            thrice[l] = if elapsed[l] == 0 { 3.0 * position[l] } else { single };
        }
        let (_, cos) = trig::sin_cos(&thrice);
        let (mut next, mut next_velocity) = ([0.0; LANES], [0.0; LANES]);
        let (mut rewards, mut terminated) = ([0.0; LANES], [false; LANES]);
        for l in 0..LANES {
            let throttle = throttles[l][0];
            let slope = SLOPE * cos[l];
            let within = f64::from(throttle * POWER as f32 - slope as f32);
            let beyond = f64::from(throttle.clamp(-1.0, 1.0)) * POWER - slope;
            let push = if throttle.abs() <= 1.0 { within } else { beyond };

            let first = driven(position[l], velocity[l], push, GOAL);
            let later = driven(position[l] as f32, velocity[l] as f32, push as f32, GOAL);
            let (position, velocity, goal) = if elapsed[l] == 0 {
                (first.0 as f32, first.1 as f32, first.2)
            } else {
                later
            };
            (next[l], next_velocity[l]) = (f64::from(position), f64::from(velocity));
            terminated[l] = goal;
            let throttle = f64::from(throttle);
            rewards[l] = (if goal { 100.0 } else { 0.0 }) - throttle * throttle * 0.1;
        }
        Moved {
            state: [next, next_velocity],
            rewards,
            terminated,
        }
    }

    #[inline(always)]
    fn rows(state: &State) -> Self::Rows {
        rows(state)
    }
}
