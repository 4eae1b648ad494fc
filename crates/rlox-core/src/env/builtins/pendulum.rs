//! A pendulum to be swung up and held by a torque too weak to lift it directly: Gymnasium's v1.

use std::f64::consts::PI;

use crate::env::info::StepInfo;
use crate::env::spaces::Space;
use crate::env::{Action, Bounds, RLEnv, Transition};

const MAX_SPEED: f64 = 8.0;
const MAX_TORQUE: f32 = 2.0;
/// Seconds a step.
const DT: f64 = 0.05;
/// 3 g / 2 l, with g = 10 and l = 1.
const GRAVITY: f64 = 15.0;

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
        200
    }

    fn initial_bounds(&self) -> &'static [Bounds] {
        &[(-PI, PI), (-1.0, 1.0)]
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
        let angle = (theta + PI).rem_euclid(2.0 * PI) - PI;
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
