//! A single [`crate::env::builtins::CartPole`].

use super::{RLEnv, Stepped};
use crate::env::builtins::cartpole::{
    DT, FORCE, GRAVITY, LENGTH, POLE_MASS, POLE_MOMENT, THETA_LIMIT, TOTAL_MASS, X_LIMIT,
};
use crate::env::info::StepInfo;
use crate::env::spaces::Action;

/// The state: `x, x_dot, theta, theta_dot`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CartPole([f64; 4]);

impl<I: StepInfo> RLEnv<I> for CartPole {
    fn state(&self) -> &[f64] {
        &self.0
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }

    fn step(&mut self, action: Action<'_>, _elapsed: u32) -> Stepped<I> {
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
        Stepped {
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
