//! A pole balanced on a cart: Barto, Sutton and Anderson, "Neuronlike adaptive elements…" (1983), in
//! Gymnasium's v1 (equations of Florian's correction without friction, explicit Euler).

use crate::env::info::StepInfo;
use crate::env::lanes::{LANES, Lanes, Moved, Physics, State, advance};
use crate::env::spaces::Space;
use crate::env::stepping::Outcome;
use crate::env::{Action, Bounds, RLEnv, Transition, trig};
use crate::simd::kernel;

const GRAVITY: f64 = 9.8;
const POLE_MASS: f64 = 0.1;
const TOTAL_MASS: f64 = POLE_MASS + 1.0;
/// Half of the pole's length, m.
const LENGTH: f64 = 0.5;
const POLE_MOMENT: f64 = POLE_MASS * LENGTH;
const FORCE: f64 = 10.0;
/// Seconds a step.
const DT: f64 = 0.02;
const X_LIMIT: f64 = 2.4;
// In the order in which Gymnasium computes 12 degrees, for the last bit.
const THETA_LIMIT: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0;
const MAX_EPISODE_STEPS: u32 = 500;
const INITIAL_BOUNDS: &[Bounds] = &[(-0.05, 0.05); 4];

/// `CartPole-v1`; the state is `x, x_dot, theta, theta_dot` in m, m/s, rad, rad/s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CartPole([f64; 4]);

impl CartPole {
    /// Its id in Gymnasium.
    pub const ID: &str = "CartPole-v1";
}

impl<I: StepInfo> RLEnv<I> for CartPole {
    /// Twice the limits, so that the state that ends an episode lies within.
    fn observation_space(&self) -> Space {
        Space::symmetric(vec![
            (X_LIMIT * 2.0) as f32,
            f32::INFINITY,
            (THETA_LIMIT * 2.0) as f32,
            f32::INFINITY,
        ])
    }

    /// 0 pushes to the left, 1 to the right.
    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn max_episode_steps(&self) -> u32 {
        MAX_EPISODE_STEPS
    }

    fn initial_bounds(&self) -> &'static [Bounds] {
        INITIAL_BOUNDS
    }

    fn state(&self) -> &[f64] {
        &self.0
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }

    fn step(&mut self, action: Action<'_>) -> Transition<I> {
        let [x, x_dot, theta, theta_dot] = self.0;
        let force = if action == Action::Discrete(1) {
            FORCE
        } else {
            -FORCE
        };
        let (sin, cos) = (theta.sin(), theta.cos());

        let push = (force + POLE_MOMENT * (theta_dot * theta_dot) * sin) / TOTAL_MASS;
        let theta_acc = (GRAVITY * sin - cos * push)
            / (LENGTH * (4.0 / 3.0 - POLE_MASS * (cos * cos) / TOTAL_MASS));
        let x_acc = push - POLE_MOMENT * theta_acc * cos / TOTAL_MASS;

        self.0 = [
            x + DT * x_dot,
            x_dot + DT * x_acc,
            theta + DT * theta_dot,
            theta_dot + DT * theta_acc,
        ];
        let [x, _, theta, _] = self.0;
        Transition {
            // The step that drops the pole is paid as well.
            reward: 1.0,
            terminated: x.abs() > X_LIMIT || theta.abs() > THETA_LIMIT,
            info: I::nothing(),
        }
    }

    fn obs(&self) -> Vec<f32> {
        self.0.iter().map(|&component| component as f32).collect()
    }

    fn write_obs(&self, out: &mut [f32]) {
        for (out, &component) in out.iter_mut().zip(&self.0) {
            *out = component as f32;
        }
    }
}

/// The same equations for eight at once, operation by operation; sine and cosine are `trig`'s.
#[allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]
impl Physics<4> for CartPole {
    type Action = i64;
    const MAX_EPISODE_STEPS: u32 = MAX_EPISODE_STEPS;
    const INITIAL_BOUNDS: &'static [Bounds] = INITIAL_BOUNDS;

    #[inline(always)]
    fn step(state: &mut State, actions: [i64; LANES]) -> Moved {
        let [x, x_dot, theta, theta_dot] = state;
        let (sin, cos) = trig::sin_cos(theta);
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
        let mut terminated = [false; LANES];
        for l in 0..LANES {
            terminated[l] = (x[l].abs() > X_LIMIT) | (theta[l].abs() > THETA_LIMIT);
        }
        Moved {
            rewards: [1.0; LANES],
            terminated,
        }
    }

    #[inline(always)]
    fn rows(state: &State) -> [[f32; 4]; LANES] {
        let mut rows = [[0.0; 4]; LANES];
        for (component, values) in state.iter().enumerate() {
            for l in 0..LANES {
                rows[l][component] = values[l] as f32;
            }
        }
        rows
    }
}

kernel! {
    /// A step of all of them.
    pub(crate) fn step_lanes(
        all: &mut [Lanes], actions: &[i64], obs: &mut [f32], outcome: Outcome<'_>,
    ) = advance<CartPole, 4>;
}
