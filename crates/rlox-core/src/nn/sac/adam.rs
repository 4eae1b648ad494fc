//! Adam (Kingma & Ba 2015) as torch computes it, with the targets' Polyak step in the same pass.

use super::Trained;

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
        self.each(trained, grad, |_, _| ());
    }

    /// The same; then `target <- (1 - tau) target + tau params`.
    pub fn apply_and_follow(
        &self,
        trained: &mut Trained<'_>,
        grad: &[f32],
        target: &mut [f32],
        tau: f64,
    ) {
        let target = &mut target[..trained.params.len()];
        let (keep, tau) = ((1.0 - tau) as f32, tau as f32);
        self.each(trained, grad, |i, param| {
            target[i] = keep * target[i] + tau * param;
        });
    }

    #[inline(always)]
    fn each(&self, trained: &mut Trained<'_>, grad: &[f32], mut then: impl FnMut(usize, f32)) {
        let step_size = (self.lr / (1.0 - self.beta1.powf(self.step))) as f32;
        let root = (1.0 - self.beta2.powf(self.step)).sqrt() as f32;
        let (rest1, rest2) = ((1.0 - self.beta1) as f32, (1.0 - self.beta2) as f32);
        let (beta2, eps) = (self.beta2 as f32, self.eps as f32);
        let n = trained.params.len();
        let (exp_avg, exp_avg_sq) = (&mut trained.exp_avg[..n], &mut trained.exp_avg_sq[..n]);
        for i in 0..n {
            let g = grad[i];
            exp_avg[i] += rest1 * (g - exp_avg[i]);
            exp_avg_sq[i] = beta2 * exp_avg_sq[i] + rest2 * g * g;
            trained.params[i] -= step_size * exp_avg[i] / (exp_avg_sq[i].sqrt() / root + eps);
            then(i, trained.params[i]);
        }
    }
}
