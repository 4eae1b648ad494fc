//! A single [`crate::env::builtins::Pendulum`].

use std::f64::consts::PI;

use super::{RLEnv, Stepped};
use crate::env::builtins::pendulum::{DT, GRAVITY, MAX_SPEED, MAX_TORQUE, TURN};
use crate::env::info::StepInfo;
use crate::env::spaces::Action;

/// The state: `theta, theta_dot`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pendulum([f64; 2]);

impl<I: StepInfo> RLEnv<I> for Pendulum {
    fn state(&self) -> &[f64] {
        &self.0
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }

    fn step(&mut self, action: Action<'_>, _elapsed: u32) -> Stepped<I> {
        let [theta, theta_dot] = self.0;
        let torque = match action {
            Action::Continuous(torque) => torque[0].clamp(-MAX_TORQUE, MAX_TORQUE),
            Action::Discrete(_) => 0.0,
        };
        let angle = (theta + PI).rem_euclid(TURN) - PI;
        let cost = angle * angle
            + 0.1 * (theta_dot * theta_dot)
            + f64::from(0.001_f32 * (torque * torque));

        let acceleration = GRAVITY * theta.sin() + f64::from(3.0 * torque);
        let theta_dot = (theta_dot + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
        self.0 = [theta + theta_dot * DT, theta_dot];
        Stepped {
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
