//! A car driven out of a valley by an engine too weak for the slope: Moore, "Efficient Memory-based
//! Learning for Robot Control" (1990), in Gymnasium's v0.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use crate::env::physics::{Bounds, LANES, Moved, Physics};
use crate::env::spaces::Space;
use crate::env::trig;

/// Position and velocity.
type State = [[f64; LANES]; 2];

const LEFT_END: f64 = -1.2;
const RIGHT_END: f64 = 0.6;
const GOAL: f64 = 0.5;
const MAX_SPEED: f64 = 0.07;
const POWER: f64 = 0.001;
const SLOPE: f64 = 0.0025;

/// `MountainCar-v0`; the state is the position and the velocity, a step being the unit of time.
#[derive(Debug)]
pub enum MountainCar {}

impl Physics for MountainCar {
    const ID: &'static str = "MountainCar-v0";
    const MAX_EPISODE_STEPS: u32 = 200;
    /// Of the position; the car stands.
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-0.6, -0.4)];
    type State = State;
    type Action = i64;
    type Rows = [[f32; 2]; LANES];

    /// The state.
    fn observation_space() -> Space {
        let fastest = MAX_SPEED as f32;
        Space::Box {
            low: vec![LEFT_END as f32, -fastest],
            high: vec![RIGHT_END as f32, fastest],
        }
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
        let mut terminated = [false; LANES];
        for l in 0..LANES {
            let push = (actions[l] - 1) as f64 * POWER + cos[l] * -SLOPE;
            let fast = (velocity[l] + push).clamp(-MAX_SPEED, MAX_SPEED);
            position[l] = (position[l] + fast).clamp(LEFT_END, RIGHT_END);
            let stopped = (position[l] == LEFT_END) & (fast < 0.0);
            velocity[l] = if stopped { 0.0 } else { fast };
            terminated[l] = (position[l] >= GOAL) & (velocity[l] >= 0.0);
        }
        Moved {
            state: [position, velocity],
            rewards: [-1.0; LANES],
            terminated,
        }
    }

    #[inline(always)]
    fn rows([position, velocity]: &State) -> Self::Rows {
        let mut rows = [[0.0; 2]; LANES];
        for l in 0..LANES {
            rows[l] = [position[l] as f32, velocity[l] as f32];
        }
        rows
    }
}
