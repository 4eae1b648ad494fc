//! The actor's side of the update: the clipped surrogate and the entropy, with their gradients. The
//! actor's distribution is one categorical, several categoricals, independent bits or a diagonal
//! Gaussian.

use super::parts::{Parts, Several, Whole};
use super::{Network, Ppo, RolloutData, SampledActions, Side};
use crate::RloxError;
use crate::math;
use crate::memory::{reserved, zeros};
use crate::nn::Activations;
use crate::nn::adam::{Moments, norm_squared};

const HALF_LOG_2PI: f32 = 0.918_938_5;

/// The actor in training.
pub(super) struct Actor<'a> {
    ppo: &'a Ppo,
    network: Network<'a>,
    log_std: Option<Moments<'a>>,
    acts: Activations,
    grad: Vec<f32>,
    grad_log_std: Vec<f32>,
    obs: Vec<f32>,
    minibatch: Minibatch,
    /// The terms of the present minibatch.
    latest: Sums,
    /// Their sums over the minibatches that a step was made for.
    pub(super) sums: Sums,
}

/// What the actor contributes to [`super::Figures`].
#[derive(Default)]
pub(super) struct Sums {
    pub(super) n_minibatches: usize,
    pub(super) policy_loss: f64,
    pub(super) entropy_loss: f64,
    pub(super) approx_kl: f64,
    pub(super) clip_fraction: f64,
}

/// The values of one minibatch of `B` rows. It is kept between minibatches for its memory.
pub(super) struct Minibatch {
    /// `[B]`, A, normalised if asked for.
    advantages: Vec<f32>,
    /// `[B]`, log pi(a|s) - log pi_old(a|s).
    pub(super) log_ratio: Vec<f32>,
    /// `[B]`, r.
    ratio: Vec<f32>,
    /// `[B]`, derivative of the surrogate's loss by log pi(a|s).
    pub(super) by_log_prob: Vec<f32>,
    /// `[B, choices]`, H of a categorical. The other distributions do not keep theirs.
    pub(super) entropy: Vec<f32>,
    /// `[B, outputs]`, derivative of the loss by the actor's outputs.
    pub(super) grad_out: Vec<f32>,
    /// `[B, outputs]`, by distribution: of categoricals log pi(·|s), of a Gaussian (a - mean) / std, of
    /// bits -log pi(0|s).
    pub(super) per_action: Vec<f32>,
    /// `[B, outputs]`: of categoricals pi(·|s), of bits pi(1|s).
    pub(super) probs: Vec<f32>,
    /// `[B, choices]`, the softmax's denominator, then its logarithm.
    pub(super) totals: Vec<f32>,
    /// `[act_dim]`, 1 / std of a Gaussian.
    inverse_std: Vec<f32>,
}

impl<'a> Actor<'a> {
    /// With room for minibatches of `rows` rows.
    pub(super) fn new(
        ppo: &'a Ppo,
        network: Network<'a>,
        log_std: Option<Moments<'a>>,
        rows: usize,
    ) -> Result<Self, RloxError> {
        let mut acts = Activations::default();
        acts.reserve(network.mlp, rows)?;
        Ok(Self {
            ppo,
            grad: zeros(network.mlp.n_params())?,
            grad_log_std: zeros(log_std.as_ref().map_or(0, |log_std| log_std.params.len()))?,
            acts,
            obs: reserved(rows.saturating_mul(network.mlp.n_inputs()))?,
            minibatch: Minibatch::of(rows, network.mlp.n_outputs())?,
            network,
            log_std,
            latest: Sums::default(),
            sums: Sums::default(),
        })
    }
}

impl Side for Actor<'_> {
    fn gradient(&mut self, rollout: &RolloutData<'_>, batch: &[i64]) -> Option<f64> {
        let (mlp, params) = (self.network.mlp, &*self.network.moments.params);
        let (minibatch, latest) = (&mut self.minibatch, &mut self.latest);
        self.ppo
            .gather(rollout.obs, mlp.n_inputs(), batch, &mut self.obs);
        let outputs = mlp.forward(params, &self.obs, batch.len(), &mut self.acts);
        minibatch.take_advantages(self.ppo, rollout, batch);
        match (&self.log_std, rollout.actions) {
            (None, SampledActions::Discrete(actions)) if self.ppo.by_columns => {
                let old = rollout.log_probs;
                minibatch.choose_by_columns(self.ppo, outputs, actions, old, batch, latest)?;
            }
            (None, SampledActions::Discrete(actions)) => {
                let choices = (actions, Whole(mlp.n_outputs()));
                minibatch.choose(self.ppo, outputs, choices, rollout.log_probs, batch, latest)?;
            }
            (None, SampledActions::Several { chosen, nvec }) => {
                let choices = (chosen, Several(nvec));
                minibatch.choose(self.ppo, outputs, choices, rollout.log_probs, batch, latest)?;
            }
            (None, SampledActions::Bits(actions)) => {
                minibatch.bits(outputs, actions, rollout.log_probs, batch);
                minibatch.surrogate(self.ppo, latest)?;
                latest.entropy_loss = minibatch.bits_gradient(self.ppo, outputs, actions, batch);
            }
            (Some(log_std), SampledActions::Continuous(actions)) => {
                let log_std = &*log_std.params;
                let old = rollout.log_probs;
                minibatch.gaussian(self.ppo, outputs, log_std, actions, old, batch);
                minibatch.surrogate(self.ppo, latest)?;
                let entropy = |log_std: &f32| log_std + 0.5 + HALF_LOG_2PI;
                latest.entropy_loss = -f64::from(log_std.iter().map(entropy).sum::<f32>());
                minibatch.gaussian_gradient(self.ppo, &mut self.grad_log_std);
            }
            // `check` refuses any other combination.
            _ => return None,
        }

        let (acts, grad, out) = (&mut self.acts, &mut self.grad, &minibatch.grad_out);
        mlp.backward(params, &self.obs, batch.len(), acts, out, grad);
        Some(norm_squared(&self.grad) + norm_squared(&self.grad_log_std))
    }

    fn step(&mut self, t: u64, scale: f32) {
        let adam = &self.ppo.adam;
        adam.step(t, &mut self.network.moments, &self.grad, scale);
        if let Some(log_std) = &mut self.log_std {
            adam.step(t, log_std, &self.grad_log_std, scale);
        }
        let (sums, latest) = (&mut self.sums, &self.latest);
        sums.n_minibatches += 1;
        sums.policy_loss += latest.policy_loss;
        sums.entropy_loss += latest.entropy_loss;
        sums.approx_kl += latest.approx_kl;
        sums.clip_fraction += latest.clip_fraction;
    }
}

impl Minibatch {
    /// With room for `rows` rows of `actions` outputs.
    fn of(rows: usize, actions: usize) -> Result<Self, RloxError> {
        let all = rows.saturating_mul(actions);
        Ok(Self {
            advantages: reserved(rows)?,
            log_ratio: reserved(rows)?,
            ratio: reserved(rows)?,
            by_log_prob: reserved(rows)?,
            entropy: reserved(all)?,
            grad_out: reserved(all)?,
            per_action: reserved(all)?,
            probs: reserved(all)?,
            totals: reserved(all)?,
            inverse_std: reserved(actions)?,
        })
    }

    /// Sets `advantages`, normalised if asked for.
    fn take_advantages(&mut self, ppo: &Ppo, rollout: &RolloutData<'_>, batch: &[i64]) {
        ppo.gather(rollout.advantages, 1, batch, &mut self.advantages);
        let n = batch.len() as f64;
        if !ppo.normalize_advantage || batch.len() < 2 {
            return;
        }
        let wide = |a: &f32| f64::from(*a);
        let mean = self.advantages.iter().map(wide).sum::<f64>() / n;
        let squares = self.advantages.iter().map(|a| (wide(a) - mean).powi(2));
        let std = (squares.sum::<f64>() / (n - 1.0)).sqrt() as f32;
        let (mean, std) = (mean as f32, std + 1e-8);
        for a in &mut self.advantages {
            *a = (*a - mean) / std;
        }
    }

    /// Sets `ratio`, `by_log_prob` and the figures from `log_ratio` and `advantages`. None where the
    /// approximate KL divergence from the old policy is above 1.5 `target_kl`.
    pub(super) fn surrogate(&mut self, ppo: &Ppo, latest: &mut Sums) -> Option<()> {
        self.ratio.clone_from(&self.log_ratio);
        math::exp(&mut self.ratio);
        let n = self.ratio.len() as f32;
        let (low, high) = (1.0 - ppo.clip_range, 1.0 + ppo.clip_range);
        let (mut objective, mut kl, mut clipped) = (0.0f64, 0.0f64, 0u32);
        self.by_log_prob.clear();
        for ((&ratio, &log_ratio), &a) in
            self.ratio.iter().zip(&self.log_ratio).zip(&self.advantages)
        {
            let plain = ratio * a;
            let bounded = ratio.clamp(low, high) * a;
            objective += f64::from(plain.min(bounded));
            kl += f64::from(ratio - 1.0 - log_ratio);
            clipped += u32::from((ratio - 1.0).abs() > ppo.clip_range);
            // d r / d log pi = r. Where the clipped term is the smaller one, it is constant.
            let moves = plain < bounded || (low <= ratio && ratio <= high);
            self.by_log_prob.push(if moves { -plain / n } else { 0.0 });
        }
        let n = f64::from(n);
        latest.policy_loss = -objective / n;
        latest.approx_kl = kl / n;
        latest.clip_fraction = f64::from(clipped) / n;
        let too_far = ppo
            .target_kl
            .is_some_and(|target| latest.approx_kl > 1.5 * target);
        (!too_far).then_some(())
    }

    /// The loss and its gradient by `logits`, `[B, logits]`, where actions are choices, `[n, choices]`.
    /// None as in `surrogate`.
    fn choose(
        &mut self,
        ppo: &Ppo,
        logits: &[f32],
        (actions, parts): (&[i64], impl Parts),
        old_log_probs: &[f32],
        batch: &[i64],
        latest: &mut Sums,
    ) -> Option<()> {
        self.categorical(logits, parts);
        let n = parts.in_row();
        let taken = |i: i64| &actions[i as usize * n..][..n];
        let mut log_probs = parts.of(&self.per_action);
        self.log_ratio.clear();
        self.log_ratio.extend(batch.iter().map(|&i| {
            let each = taken(i).iter().zip(&mut log_probs);
            let log_prob: f32 = each
                .map(|(&action, log_probs)| log_probs[action as usize])
                .sum();
            log_prob - old_log_probs[i as usize]
        }));
        drop(log_probs);
        self.surrogate(ppo, latest)?;
        latest.entropy_loss = -self.entropy_of_categorical(parts);
        self.categorical_gradient(ppo, batch.iter().map(|&i| taken(i)), parts);
        Some(())
    }

    /// Sets `per_action` to the log-softmax of `logits` and `probs` to their softmax.
    fn categorical(&mut self, logits: &[f32], parts: impl Parts) {
        self.per_action.clear();
        self.per_action.extend_from_slice(logits);
        for row in parts.of_mut(&mut self.per_action) {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut().for_each(|logit| *logit -= largest);
        }
        self.probs.clone_from(&self.per_action);
        math::exp(&mut self.probs);
        let sum = |row: &[f32]| row.iter().sum::<f32>();
        self.totals.clear();
        self.totals.extend(parts.of(&self.probs).map(sum));
        for (row, total) in parts.of_mut(&mut self.probs).zip(&self.totals) {
            row.iter_mut().for_each(|p| *p /= total);
        }
        math::ln(&mut self.totals);
        for (row, total) in parts.of_mut(&mut self.per_action).zip(&self.totals) {
            row.iter_mut().for_each(|logit| *logit -= total);
        }
    }

    /// Sets `entropy` to H = -sum p log p of each choice. Returns the mean over rows of its sum over
    /// choices.
    fn entropy_of_categorical(&mut self, parts: impl Parts) -> f64 {
        self.entropy.clear();
        let rows = parts.of(&self.probs).zip(parts.of(&self.per_action));
        let entropy =
            |(p, log_p): (&[f32], &[f32])| -p.iter().zip(log_p).map(|(p, l)| p * l).sum::<f32>();
        self.entropy.extend(rows.map(entropy));
        let total: f64 = self.entropy.iter().map(|&h| f64::from(h)).sum();
        total / self.ratio.len() as f64
    }

    /// Sets `grad_out`, by `d log p_a / d z_j = [j = a] - p_j` and `d H / d z_j = -p_j (log p_j + H)`
    /// for logits z.
    fn categorical_gradient<'a>(
        &mut self,
        ppo: &Ppo,
        actions: impl Iterator<Item = &'a [i64]>,
        parts: impl Parts,
    ) {
        self.grad_out.clear();
        let c2 = ppo.ent_coef / self.ratio.len() as f32;
        let mut rows = (parts.of(&self.probs))
            .zip(parts.of(&self.per_action))
            .zip(&self.entropy);
        for (&g, actions) in self.by_log_prob.iter().zip(actions) {
            for (&action, ((p, log_p), &h)) in actions.iter().zip(&mut rows) {
                let start = self.grad_out.len();
                let by_logit = |(p, l): (&f32, &f32)| p * (c2 * (l + h) - g);
                self.grad_out.extend(p.iter().zip(log_p).map(by_logit));
                self.grad_out[start + action as usize] += g;
            }
        }
    }

    /// Sets `log_ratio`, `per_action` and `probs` from `logits` z, `[B, bits]`: for each bit
    /// `log pi(a|s) = a z + log pi(0|s)`.
    fn bits(&mut self, logits: &[f32], actions: &[f32], old_log_probs: &[f32], batch: &[i64]) {
        // -log pi(0|s) = softplus(z) = max(z, 0) + ln(1 + exp(-|z|)), where exp(-|z|) does not
        // overflow. The smaller probability is computed from it, too, not as 1 minus the larger one,
        // which would cancel.
        self.probs.clear();
        self.probs.extend(logits.iter().map(|z| -z.abs()));
        math::exp(&mut self.probs);
        self.per_action.clear();
        self.per_action.extend(self.probs.iter().map(|e| 1.0 + e));
        math::ln(&mut self.per_action);
        let rows = self.per_action.iter_mut().zip(&mut self.probs);
        for ((per_action, p), z) in rows.zip(logits) {
            *per_action += z.max(0.0);
            let larger = 1.0 / (1.0 + *p);
            *p = if *z >= 0.0 { larger } else { *p * larger };
        }
        let n = logits.len() / batch.len();
        let rows = logits.chunks_exact(n).zip(self.per_action.chunks_exact(n));
        self.log_ratio.clear();
        self.log_ratio
            .extend(rows.zip(batch).map(|((logits, per_action), &i)| {
                let taken = &actions[i as usize * n..][..n];
                let each = taken.iter().zip(logits).zip(per_action);
                let log_prob: f32 = each.map(|((a, z), no)| a * z - no).sum();
                log_prob - old_log_probs[i as usize]
            }));
    }

    /// Sets `grad_out`, by `d log p_a / d z = a - p` and `d H / d z = -z p (1 - p)`. Returns minus the
    /// mean over rows of the sum over bits of `H = -log pi(0|s) - z p`.
    fn bits_gradient(&mut self, ppo: &Ppo, logits: &[f32], actions: &[f32], batch: &[i64]) -> f64 {
        let n = logits.len() / batch.len();
        let c2 = ppo.ent_coef / batch.len() as f32;
        self.grad_out.clear();
        let mut entropy = 0.0f64;
        let rows = logits.chunks_exact(n).zip(self.probs.chunks_exact(n));
        let rows = rows.zip(self.per_action.chunks_exact(n)).zip(batch);
        for ((((logits, probs), per_action), &i), &g) in rows.zip(&self.by_log_prob) {
            let taken = &actions[i as usize * n..][..n];
            for (((z, p), no), a) in logits.iter().zip(probs).zip(per_action).zip(taken) {
                entropy += f64::from(no - z * p);
                self.grad_out.push(g * (a - p) + c2 * z * p * (1.0 - p));
            }
        }
        -entropy / batch.len() as f64
    }

    /// Sets `log_ratio`, and `per_action` to z = (a - mean) / std, from `means`, `[B, act_dim]`.
    fn gaussian(
        &mut self,
        ppo: &Ppo,
        means: &[f32],
        log_std: &[f32],
        actions: &[f32],
        old_log_probs: &[f32],
        batch: &[i64],
    ) {
        let n = log_std.len();
        self.inverse_std.clear();
        self.inverse_std
            .extend(log_std.iter().map(|log_std| (-log_std).exp()));
        ppo.gather(actions, n, batch, &mut self.per_action);
        self.log_ratio.clear();
        let rows = self
            .per_action
            .chunks_exact_mut(n)
            .zip(means.chunks_exact(n));
        for ((row, means), &i) in rows.zip(batch) {
            let mut log_prob = 0.0;
            let scale = self.inverse_std.iter().zip(log_std);
            for ((z, mean), (inverse_std, log_std)) in row.iter_mut().zip(means).zip(scale) {
                *z = (*z - mean) * inverse_std;
                log_prob += -0.5 * *z * *z - log_std - HALF_LOG_2PI;
            }
            self.log_ratio.push(log_prob - old_log_probs[i as usize]);
        }
    }

    /// Sets `grad_out` and `grad_log_std`, by `d log p / d mean = z / std`, `d H / d log_std = 1` and
    /// `d log p / d log_std = z² - 1`.
    fn gaussian_gradient(&mut self, ppo: &Ppo, grad_log_std: &mut [f32]) {
        let n = grad_log_std.len();
        self.grad_out.clear();
        grad_log_std.fill(-ppo.ent_coef);
        for (row, &g) in self.per_action.chunks_exact(n).zip(&self.by_log_prob) {
            let scale = self.inverse_std.iter().zip(grad_log_std.iter_mut());
            for (&z, (inverse_std, grad)) in row.iter().zip(scale) {
                self.grad_out.push(g * z * inverse_std);
                *grad += g * (z * z - 1.0);
            }
        }
    }
}
