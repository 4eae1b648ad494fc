//! A pole balanced on a cart: Barto, Sutton and Anderson, "Neuronlike adaptive elements…" (1983). It
//! follows Gymnasium's v1, which has Florian's corrected equations without friction, integrated by
//! Euler's explicit method.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use crate::env::info::StepInfo;
use crate::env::physics::{Bounds, Flags, LANES, Moved, Physics};
use crate::env::scalar::{self, RLEnv};
use crate::env::spaces::Space;
use crate::env::trig;

pub(crate) const GRAVITY: f64 = 9.8;
pub(crate) const POLE_MASS: f64 = 0.1;
pub(crate) const TOTAL_MASS: f64 = POLE_MASS + 1.0;
/// Half of the pole's length, m.
pub(crate) const LENGTH: f64 = 0.5;
pub(crate) const POLE_MOMENT: f64 = POLE_MASS * LENGTH;
pub(crate) const FORCE: f64 = 10.0;
/// The duration of a step, in seconds.
pub(crate) const DT: f64 = 0.02;
pub(crate) const X_LIMIT: f64 = 2.4;
// 12 degrees in rad, computed in Gymnasium's order, so that the last bit is the same.
pub(crate) const THETA_LIMIT: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0;

/// `CartPole-v1`. The state is `x, x_dot, theta, theta_dot` in m, m/s, rad, rad/s.
#[derive(Debug)]
pub enum CartPole {}

impl Physics for CartPole {
    const ID: &'static str = "CartPole-v1";
    const MAX_EPISODE_STEPS: u32 = 500;
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-0.05, 0.05); 4];
    type State = [[f64; LANES]; 4];
    type Action = i64;
    type Rows = [[f32; 4]; LANES];

    /// The observation is the state. The bounds are twice the limits at which an episode ends, so that the
    /// last observation lies within them.
    fn observation_space() -> Space {
        Space::symmetric(vec![
            (X_LIMIT * 2.0) as f32,
            f32::INFINITY,
            (THETA_LIMIT * 2.0) as f32,
            f32::INFINITY,
        ])
    }

    /// 0 pushes to the left, 1 to the right.
    fn action_space() -> Space {
        Space::Discrete(2)
    }

    #[inline(always)]
    fn step(
        [mut x, mut x_dot, mut theta, mut theta_dot]: Self::State,
        _elapsed: &[u32; LANES],
        actions: &[i64; LANES],
    ) -> Moved<Self::State> {
        let (sin, cos) = trig::sin_cos(&theta);
        for l in 0..LANES {
            let force = if actions[l] == 1 { FORCE } else { -FORCE };
            let (sin, cos) = (sin[l], cos[l]);
            let push = (force + POLE_MOMENT * (theta_dot[l] * theta_dot[l]) * sin) / TOTAL_MASS;
            let theta_acc = (GRAVITY * sin - cos * push)
                / (LENGTH * (4.0 / 3.0 - POLE_MASS * (cos * cos) / TOTAL_MASS));
            let x_acc = push - POLE_MOMENT * theta_acc * cos / TOTAL_MASS;
            x[l] += DT * x_dot[l];
            x_dot[l] += DT * x_acc;
            theta[l] += DT * theta_dot[l];
            theta_dot[l] += DT * theta_acc;
        }
        let mut terminated = Flags::default();
        for l in 0..LANES {
            let fell = (x[l].abs() > X_LIMIT) | (theta[l].abs() > THETA_LIMIT);
            terminated[l] = u64::from(fell);
        }
        Moved {
            state: [x, x_dot, theta, theta_dot],
            // Also for the step in which the pole falls.
            rewards: [1.0; LANES],
            terminated,
        }
    }

    #[inline(always)]
    fn rows(state: &Self::State) -> Self::Rows {
        let mut rows = [[0.0; 4]; LANES];
        for (component, values) in state.iter().enumerate() {
            for l in 0..LANES {
                rows[l][component] = values[l] as f32;
            }
        }
        rows
    }

    fn alone<I: StepInfo>() -> Box<dyn RLEnv<I>> {
        Box::new(scalar::CartPole::default())
    }
}
