//! A pendulum to be swung up and held by a torque too weak to lift it directly: Gymnasium's v1.

use std::f64::consts::PI;

use crate::env::info::StepInfo;
use crate::env::lanes::{LANES, Lanes, Moved, Physics, State, advance};
use crate::env::spaces::Space;
use crate::env::stepping::Outcome;
use crate::env::{Action, Bounds, RLEnv, Transition, trig};
use crate::simd::kernel;

const MAX_SPEED: f64 = 8.0;
const MAX_TORQUE: f32 = 2.0;
/// Seconds a step.
const DT: f64 = 0.05;
/// 3 g / 2 l, with g = 10 and l = 1.
const GRAVITY: f64 = 15.0;
const TURN: f64 = 2.0 * PI;
const MAX_EPISODE_STEPS: u32 = 200;
const INITIAL_BOUNDS: &[Bounds] = &[(-PI, PI), (-1.0, 1.0)];

/// `Pendulum-v1`; the state is the angle from upright in rad and its velocity in rad/s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pendulum([f64; 2]);

impl Pendulum {
    /// Its id in Gymnasium.
    pub const ID: &str = "Pendulum-v1";
}

impl<I: StepInfo> RLEnv<I> for Pendulum {
    /// `cos theta, sin theta, theta_dot`.
    fn observation_space(&self) -> Space {
        Space::symmetric(vec![1.0, 1.0, MAX_SPEED as f32])
    }

    /// The torque in N m; beyond the bounds it is clipped.
    fn action_space(&self) -> Space {
        Space::symmetric(vec![MAX_TORQUE])
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
        let [theta, theta_dot] = self.0;
        let torque = match action {
            Action::Continuous(torque) => torque[0].clamp(-MAX_TORQUE, MAX_TORQUE),
            Action::Discrete(_) => 0.0,
        };
        let angle = (theta + PI).rem_euclid(TURN) - PI;
        // Terms of the torque alone stay in f32: NumPy does not promote by Python's floats.
        let cost = angle * angle
            + 0.1 * (theta_dot * theta_dot)
            + f64::from(0.001_f32 * (torque * torque));

        let acceleration = GRAVITY * theta.sin() + f64::from(3.0 * torque);
        let theta_dot = (theta_dot + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
        self.0 = [theta + theta_dot * DT, theta_dot];
        Transition {
            reward: -cost,
            terminated: false,
            info: I::nothing(),
        }
    }

    fn obs(&self) -> Vec<f32> {
        let [theta, theta_dot] = self.0;
        vec![theta.cos() as f32, theta.sin() as f32, theta_dot as f32]
    }

    fn write_obs(&self, out: &mut [f32]) {
        let [theta, theta_dot] = self.0;
        out.copy_from_slice(&[theta.cos() as f32, theta.sin() as f32, theta_dot as f32]);
    }
}

/// The same equations for eight at once, operation by operation; sine and cosine are `trig`'s.
#[allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]
impl Physics<3> for Pendulum {
    type Action = f32;
    const MAX_EPISODE_STEPS: u32 = MAX_EPISODE_STEPS;
    const INITIAL_BOUNDS: &'static [Bounds] = INITIAL_BOUNDS;

    #[inline(always)]
    fn step(state: &mut State, torques: [f32; LANES]) -> Moved {
        let [theta, theta_dot, ..] = state;
        let (sin, _) = trig::sin_cos(theta);
        let angle = angles(theta);
        let mut rewards = [0.0; LANES];
        for l in 0..LANES {
            let torque = torques[l].clamp(-MAX_TORQUE, MAX_TORQUE);
            let cost = angle[l] * angle[l]
                + 0.1 * (theta_dot[l] * theta_dot[l])
                + f64::from(0.001_f32 * (torque * torque));
            let acceleration = GRAVITY * sin[l] + f64::from(3.0 * torque);
            theta_dot[l] = (theta_dot[l] + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
            theta[l] += theta_dot[l] * DT;
            rewards[l] = -cost;
        }
        Moved {
            rewards,
            terminated: [false; LANES],
        }
    }

    #[inline(always)]
    fn rows(state: &State) -> [[f32; 3]; LANES] {
        let (sin, cos) = trig::sin_cos(&state[0]);
        let mut rows = [[0.0; 3]; LANES];
        for l in 0..LANES {
            rows[l] = [cos[l] as f32, sin[l] as f32, state[1][l] as f32];
        }
        rows
    }
}

/// Each angle from upright, within half a turn: `rem_euclid`, which is a library call. Within two
/// turns one subtraction does, and is exact.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]
fn angles(theta: &[f64; LANES]) -> [f64; LANES] {
    let mut angles = *theta;
    if theta.iter().all(|theta| (theta + PI).abs() < 2.0 * TURN) {
        for l in 0..LANES {
            let angle = theta[l] + PI;
            let whole = if angle.abs() >= TURN { TURN } else { 0.0 };
            let rest = angle - whole.copysign(angle);
            angles[l] = (if rest < 0.0 { rest + TURN } else { rest }) - PI;
        }
    } else {
        for l in 0..LANES {
            angles[l] = (theta[l] + PI).rem_euclid(TURN) - PI;
        }
    }
    angles
}

kernel! {
    /// A step of all of them.
    pub(crate) fn step_lanes(
        all: &mut [Lanes], torques: &[f32], obs: &mut [f32], outcome: Outcome<'_>,
    ) = advance<Pendulum, 3>;
}
