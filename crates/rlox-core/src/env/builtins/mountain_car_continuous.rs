//! A car driven out of a valley by an engine too weak for the slope, with a continuous throttle:
//! Gymnasium's Continuous_MountainCarEnv.
//!
//! The observations are Gymnasium's to the last place, so each operation has Gymnasium's precision. The
//! state is float64 until the first step of an episode, and float32 from then on. A throttle within its
//! bounds is float32. One beyond them is clipped to a Python float, and what it adds to the velocity is
//! computed in float64.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use super::mountain_car::{SLOPE, State, driven, rows, space};
use crate::env::physics::{Bounds, Flags, LANES, Moved, Physics};
use crate::env::spaces::Space;
use crate::env::trig;

const GOAL: f64 = 0.45;
const POWER: f64 = 0.0015;

/// `MountainCarContinuous-v0`. The state is the position and the velocity; the unit of time is a step.
#[derive(Debug)]
pub enum MountainCarContinuous {}

impl Physics for MountainCarContinuous {
    const ID: &'static str = "MountainCarContinuous-v0";
    const MAX_EPISODE_STEPS: u32 = 999;
    /// The bounds of the position. The velocity starts at zero.
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-0.6, -0.4)];
    type State = State;
    type Action = [f32; 1];
    type Rows = [[f32; 2]; LANES];

    /// The observation is the state.
    fn observation_space() -> Space {
        space()
    }

    /// The throttle. Beyond the bounds it drives no faster, but its square costs reward in full.
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
        let (mut rewards, mut terminated) = ([0.0; LANES], Flags::default());
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
            terminated[l] = u64::from(goal);
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
