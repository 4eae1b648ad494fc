//! Adam (Kingma and Ba 2015, algorithm 1) and the clipping of the gradient's norm before it, computed
//! as torch does, so that training here and training in torch agree within rounding.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use super::gemm::FLOATS;
use crate::simd::{Instructions, kernel};

/// Parameters and Adam's two moment estimates of them, all of one length.
#[derive(Debug)]
pub struct Moments<'a> {
    /// theta.
    pub params: &'a mut [f32],
    /// m, the exponential average of the gradient (torch's name for it).
    pub exp_avg: &'a mut [f32],
    /// v, the exponential average of the squared gradient.
    pub exp_avg_sq: &'a mut [f32],
}

/// Adam's hyperparameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// The step size, alpha in the paper.
    pub lr: f64,
    /// Decay rate of m.
    pub beta1: f64,
    /// Decay rate of v.
    pub beta2: f64,
    /// Added to the square root of v, so that nothing is divided by zero.
    pub eps: f64,
}

/// The scalars of one step, computed once in float64 and rounded.
#[derive(Clone, Copy)]
struct Factors {
    scale: f32,
    /// 1 - beta1
    beta1_rest: f32,
    beta2: f32,
    /// 1 - beta2
    beta2_rest: f32,
    /// 1 / sqrt(1 - beta2^t), the bias correction of sqrt(v)
    root: f32,
    eps: f32,
    /// lr / (1 - beta1^t), which has the bias correction of m in it
    step_size: f32,
}

impl Adam {
    /// One step with the gradient `scale * grad`. `t` is the number of the step, from 1 on.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn step(&self, t: u64, to: &mut Moments<'_>, grad: &[f32], scale: f32) {
        to.check(grad.len());
        let factors = self.factors(t, scale);
        step(factors, to.params, to.exp_avg, to.exp_avg_sq, grad);
    }

    /// [`Self::step`] with the gradient `grad`, then Polyak averaging of the target network's
    /// parameters: `target = (1 - tau) target + tau theta`. One pass over memory does both.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn step_and_follow(
        &self,
        t: u64,
        to: &mut Moments<'_>,
        grad: &[f32],
        target: &mut [f32],
        tau: f64,
    ) {
        to.check(grad.len());
        assert!(target.len() == grad.len());
        let factors = self.factors(t, 1.0);
        step_and_follow(
            factors,
            to.params,
            to.exp_avg,
            to.exp_avg_sq,
            grad,
            target,
            tau,
        );
    }

    fn factors(&self, t: u64, scale: f32) -> Factors {
        let t = t as f64;
        Factors {
            scale,
            beta1_rest: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            beta2_rest: (1.0 - self.beta2) as f32,
            root: (1.0 / (1.0 - self.beta2.powf(t)).sqrt()) as f32,
            eps: self.eps as f32,
            step_size: (self.lr / (1.0 - self.beta1.powf(t))) as f32,
        }
    }
}

impl Moments<'_> {
    fn check(&self, n: usize) {
        assert!(self.params.len() == n && self.exp_avg.len() == n && self.exp_avg_sq.len() == n);
    }
}

kernel! {
    /// `m += (1 - beta1) (g - m)`, `v = beta2 v + (1 - beta2) g²`,
    /// `theta -= step_size m / (sqrt(v) root + eps)`.
    fn step(
        factors: Factors,
        params: &mut [f32],
        exp_avg: &mut [f32],
        exp_avg_sq: &mut [f32],
        grad: &[f32],
    ) = step_body;
}

#[inline(always)]
fn step_body<I: Instructions>(
    f: Factors,
    params: &mut [f32],
    exp_avg: &mut [f32],
    exp_avg_sq: &mut [f32],
    grad: &[f32],
) {
    let n = grad.len();
    let (params, m, v) = (&mut params[..n], &mut exp_avg[..n], &mut exp_avg_sq[..n]);
    for i in 0..n {
        f.step::<I>(&mut params[i], &mut m[i], &mut v[i], grad[i]);
    }
}

kernel! {
    /// [`step`] with Polyak averaging of `target`, in one pass.
    fn step_and_follow(
        factors: Factors,
        params: &mut [f32],
        exp_avg: &mut [f32],
        exp_avg_sq: &mut [f32],
        grad: &[f32],
        target: &mut [f32],
        tau: f64,
    ) = step_and_follow_body;
}

#[inline(always)]
fn step_and_follow_body<I: Instructions>(
    f: Factors,
    params: &mut [f32],
    exp_avg: &mut [f32],
    exp_avg_sq: &mut [f32],
    grad: &[f32],
    target: &mut [f32],
    tau: f64,
) {
    let (keep, tau) = ((1.0 - tau) as f32, tau as f32);
    let n = grad.len();
    let (params, m, v) = (&mut params[..n], &mut exp_avg[..n], &mut exp_avg_sq[..n]);
    let target = &mut target[..n];
    for i in 0..n {
        f.step::<I>(&mut params[i], &mut m[i], &mut v[i], grad[i]);
        target[i] = I::mul_add(tau, params[i], keep * target[i]);
    }
}

impl Factors {
    #[inline(always)]
    fn step<I: Instructions>(&self, param: &mut f32, m: &mut f32, v: &mut f32, grad: f32) {
        let g = grad * self.scale;
        *m = I::mul_add(self.beta1_rest, g - *m, *m);
        *v = I::mul_add(self.beta2_rest * g, g, *v * self.beta2);
        let denominator = I::mul_add(v.sqrt(), self.root, self.eps);
        *param = I::mul_add(-self.step_size, *m / denominator, *param);
    }
}

kernel! {
    /// The sum of the squares, `||values||²`.
    pub fn norm_squared(values: &[f32]) -> f64 = norm_squared_body;
}

#[inline(always)]
fn norm_squared_body<I: Instructions>(values: &[f32]) -> f64 {
    /// Elements of a run. Each lane sums the 32 squares of a run in float32, and the sums of the runs
    /// are added in float64: all in float64 would be slower, all in float32 less exact.
    const RUN: usize = 32 * FLOATS;
    let mut total = 0.0;
    for run in values.chunks(RUN) {
        let mut sums = [0.0f32; FLOATS];
        let whole = run.len() / FLOATS * FLOATS;
        let mut i = 0;
        while i < whole {
            let vector = &run[i..i + FLOATS];
            for l in 0..FLOATS {
                sums[l] = I::mul_add(vector[l], vector[l], sums[l]);
            }
            i += FLOATS;
        }
        for i in whole..run.len() {
            sums[i - whole] = I::mul_add(run[i], run[i], sums[i - whole]);
        }
        for l in 0..FLOATS {
            total += f64::from(sums[l]);
        }
    }
    total
}

/// The factor that clips a gradient of this squared norm to `max_norm`, as
/// `torch.nn.utils.clip_grad_norm_` has it.
pub fn clip_scale(norm_squared: f64, max_norm: f64) -> f32 {
    let scale = max_norm / (norm_squared.sqrt() + 1e-6);
    // NaN stays NaN, as in torch. `scale.min(1.0)` would make 1 of it, and one network would take an
    // unclipped step where the other one's gradient is NaN.
    if scale > 1.0 { 1.0 } else { scale as f32 }
}
