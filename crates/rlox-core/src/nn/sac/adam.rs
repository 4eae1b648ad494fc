//! Adam (Kingma & Ba 2015) as torch computes it, with the targets' Polyak step in the same pass.

use super::Trained;
use crate::nn::simd::{Instructions, kernel};

/// Adam's hyperparameters, and which step this is.
#[derive(Debug, Clone, Copy)]
pub struct AdamStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of the gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Steps taken, this one included.
    pub step: f64,
}

impl AdamStep {
    /// Moves `trained` against `grad`.
    pub fn apply(&self, trained: &mut Trained<'_>, grad: &[f32]) {
        adam(&self.factors(), trained, grad);
    }

    /// The same; then `target <- (1 - tau) target + tau params`.
    pub fn apply_and_follow(
        &self,
        trained: &mut Trained<'_>,
        grad: &[f32],
        target: &mut [f32],
        tau: f64,
    ) {
        adam_and_polyak(&self.factors(), trained, grad, target, tau);
    }

    fn factors(&self) -> Factors {
        Factors {
            step_size: (self.lr / (1.0 - self.beta1.powf(self.step))) as f32,
            root: (1.0 - self.beta2.powf(self.step)).sqrt() as f32,
            rest1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            rest2: (1.0 - self.beta2) as f32,
            eps: self.eps as f32,
        }
    }
}

/// What a step multiplies with, the bias corrections in it.
struct Factors {
    step_size: f32,
    root: f32,
    rest1: f32,
    beta2: f32,
    rest2: f32,
    eps: f32,
}

kernel! {
    fn adam(factors: &Factors, trained: &mut Trained<'_>, grad: &[f32]) = adam_body;
}

kernel! {
    fn adam_and_polyak(
        factors: &Factors,
        trained: &mut Trained<'_>,
        grad: &[f32],
        target: &mut [f32],
        tau: f64,
    ) = adam_and_polyak_body;
}

#[inline(always)]
fn adam_body<I: Instructions>(factors: &Factors, trained: &mut Trained<'_>, grad: &[f32]) {
    for (((param, exp_avg), exp_avg_sq), &grad) in trained
        .params
        .iter_mut()
        .zip(&mut *trained.exp_avg)
        .zip(&mut *trained.exp_avg_sq)
        .zip(grad)
    {
        factors.step(param, exp_avg, exp_avg_sq, grad);
    }
}

#[inline(always)]
fn adam_and_polyak_body<I: Instructions>(
    factors: &Factors,
    trained: &mut Trained<'_>,
    grad: &[f32],
    target: &mut [f32],
    tau: f64,
) {
    let (keep, tau) = ((1.0 - tau) as f32, tau as f32);
    for ((((param, exp_avg), exp_avg_sq), &grad), target) in trained
        .params
        .iter_mut()
        .zip(&mut *trained.exp_avg)
        .zip(&mut *trained.exp_avg_sq)
        .zip(grad)
        .zip(target)
    {
        factors.step(param, exp_avg, exp_avg_sq, grad);
        *target = keep * *target + tau * *param;
    }
}

impl Factors {
    #[inline(always)]
    fn step(&self, param: &mut f32, exp_avg: &mut f32, exp_avg_sq: &mut f32, grad: f32) {
        *exp_avg += self.rest1 * (grad - *exp_avg);
        *exp_avg_sq = self.beta2 * *exp_avg_sq + self.rest2 * grad * grad;
        *param -= self.step_size * *exp_avg / (exp_avg_sq.sqrt() / self.root + self.eps);
    }
}
