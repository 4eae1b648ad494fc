//! A pendulum to be swung up and held by a torque too weak to lift it directly: Gymnasium's v1.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use std::f64::consts::PI;

use crate::env::info::StepInfo;
use crate::env::physics::{Bounds, Flags, LANES, Moved, Physics};
use crate::env::scalar::{self, RLEnv};
use crate::env::spaces::Space;
use crate::env::trig;

pub(crate) const MAX_SPEED: f64 = 8.0;
pub(crate) const MAX_TORQUE: f32 = 2.0;
/// The duration of a step, in seconds.
pub(crate) const DT: f64 = 0.05;
/// 3 g / (2 l), with g = 10 and l = 1.
pub(crate) const GRAVITY: f64 = 15.0;
pub(crate) const TURN: f64 = 2.0 * PI;

/// `Pendulum-v1`. The state is the angle from upright in rad and its velocity in rad/s.
#[derive(Debug)]
pub enum Pendulum {}

impl Physics for Pendulum {
    const ID: &'static str = "Pendulum-v1";
    const MAX_EPISODE_STEPS: u32 = 200;
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-PI, PI), (-1.0, 1.0)];
    type State = [[f64; LANES]; 2];
    type Action = [f32; 1];
    type Rows = [[f32; 3]; LANES];

    /// `cos theta, sin theta, theta_dot`.
    fn observation_space() -> Space {
        Space::symmetric(vec![1.0, 1.0, MAX_SPEED as f32])
    }

    /// The torque in N m. Beyond the bounds it is clipped.
    fn action_space() -> Space {
        Space::symmetric(vec![MAX_TORQUE])
    }

    #[inline(always)]
    fn step(
        [mut theta, mut theta_dot]: Self::State,
        _elapsed: &[u32; LANES],
        torques: &[[f32; 1]; LANES],
    ) -> Moved<Self::State> {
        let (sin, _) = trig::sin_cos(&theta);
        let angle = angles(&theta);
        let mut rewards = [0.0; LANES];
        for l in 0..LANES {
            let torque = torques[l][0].clamp(-MAX_TORQUE, MAX_TORQUE);
            // The torque is float32 in Gymnasium, and NumPy keeps float32 in products with Python's
            // floats. So terms of nothing but the torque are computed in f32.
            let cost = angle[l] * angle[l]
                + 0.1 * (theta_dot[l] * theta_dot[l])
                + f64::from(0.001_f32 * (torque * torque));
            let acceleration = GRAVITY * sin[l] + f64::from(3.0 * torque);
            theta_dot[l] = (theta_dot[l] + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
            theta[l] += theta_dot[l] * DT;
            rewards[l] = -cost;
        }
        Moved {
            state: [theta, theta_dot],
            rewards,
            terminated: Flags::default(),
        }
    }

    #[inline(always)]
    fn rows([theta, theta_dot]: &Self::State) -> Self::Rows {
        let (sin, cos) = trig::sin_cos(theta);
        let mut rows = [[0.0; 3]; LANES];
        for l in 0..LANES {
            rows[l] = [cos[l] as f32, sin[l] as f32, theta_dot[l] as f32];
        }
        rows
    }

    fn alone<I: StepInfo>() -> Box<dyn RLEnv<I>> {
        Box::new(scalar::Pendulum::default())
    }
}

/// The same angles within [-pi, pi], as Gymnasium computes them by a remainder. `rem_euclid` is that
/// remainder, but a library call. If every angle plus pi is less than two turns from zero, one
/// subtraction of a turn, which is exact, leaves the remainder. Then a turn is added to a negative one, as
/// `rem_euclid` does.
#[inline(always)]
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
