//! The squashed Gaussian of SAC's actor, Haarnoja et al. 2018b (arXiv 1812.05905), appendix C:
//! a = tanh(u), u = mean + std * noise, log pi(a|s) = log N(u; mean, std) - sum log(1 - a^2).
//!
//! The actor's output for an observation, its head, is `act_dim` means, then as many log standard
//! deviations.

use std::f32::consts::LN_2;
use std::ops::RangeInclusive;

/// Log standard deviations are clamped to this range, as in the authors' code.
const LOG_STD: RangeInclusive<f32> = -20.0..=2.0;
const HALF_LOG_2PI: f32 = 0.918_938_5;

/// Draws an action for each row of the actor's outputs `heads`, `[rows, 2 * act_dim]`, with standard
/// normals `noise`, `[rows, act_dim]`.
///
/// Writes the actions to `actions`, `[rows, stride]`, of which the last `act_dim` elements of a row are
/// set: a row is an input of the critics, where the action follows the observation. Writes the
/// log-probabilities to `log_probs`, `[rows]`.
pub fn sample(
    heads: &[f32],
    noise: &[f32],
    act_dim: usize,
    actions: &mut [f32],
    stride: usize,
    log_probs: &mut [f32],
) {
    let rows = heads
        .chunks_exact(2 * act_dim)
        .zip(noise.chunks_exact(act_dim))
        .zip(actions.chunks_exact_mut(stride))
        .zip(log_probs);
    for (((head, noise), row), log_prob) in rows {
        let (means, log_stds) = head.split_at(act_dim);
        *log_prob = 0.0;
        for (((&mean, &log_std), &noise), action) in means
            .iter()
            .zip(log_stds)
            .zip(noise)
            .zip(&mut row[stride - act_dim..])
        {
            let log_std = log_std.clamp(*LOG_STD.start(), *LOG_STD.end());
            let u = mean + log_std.exp() * noise;
            // Both from e = exp(-2|u|) - 1, which does not overflow: tanh |u| = -e / (2 + e), and
            // log(1 - a^2) = 2 (ln 2 - |u| - softplus(-2|u|)), which is finite where a rounds to 1.
            let e = (-2.0 * u.abs()).exp_m1();
            *action = (-e / (2.0 + e)).copysign(u);
            let squashing = 2.0 * (LN_2 - u.abs() - (1.0 + e).ln_1p());
            *log_prob += -0.5 * noise * noise - log_std - HALF_LOG_2PI - squashing;
        }
    }
}

/// Writes the gradient of `mean(alpha * log_prob - q)` by the actor's outputs to `grad_heads`,
/// `[rows, 2 * act_dim]`.
///
/// `heads` and `noise` are those that [`sample`] was given, and `actions` with `stride` what it wrote.
/// `grad_actions`, `[rows, act_dim]`, is the gradient of q by the action. `scale` is 1 over the number
/// of rows that the mean is taken over.
///
/// The noise is held fixed (the reparametrisation trick). log N(u) at u = mean + std * noise is
/// -noise²/2 - log_std - log(2 pi)/2: it does not depend on the mean, and its derivative by log_std is
/// -1. The other term, -log(1 - a^2), has the derivative 2 a by u.
#[expect(clippy::too_many_arguments, reason = "the chain rule's inputs")]
pub fn grad(
    heads: &[f32],
    noise: &[f32],
    act_dim: usize,
    actions: &[f32],
    stride: usize,
    grad_actions: &[f32],
    alpha: f32,
    scale: f32,
    grad_heads: &mut [f32],
) {
    let rows = heads
        .chunks_exact(2 * act_dim)
        .zip(noise.chunks_exact(act_dim))
        .zip(actions.chunks_exact(stride))
        .zip(grad_actions.chunks_exact(act_dim))
        .zip(grad_heads.chunks_exact_mut(2 * act_dim));
    for ((((head, noise), row), grad_action), grad_head) in rows {
        let actions = &row[stride - act_dim..];
        let (grad_means, grad_log_stds) = grad_head.split_at_mut(act_dim);
        for i in 0..act_dim {
            let (a, log_std) = (actions[i], head[act_dim + i]);
            let grad_u = scale * (alpha * 2.0 * a - grad_action[i] * (1.0 - a * a));
            grad_means[i] = grad_u;
            // Where log_std was clamped, the loss does not depend on it.
            grad_log_stds[i] = if LOG_STD.contains(&log_std) {
                grad_u * log_std.exp() * noise[i] - scale * alpha
            } else {
                0.0
            };
        }
    }
}
