//! The actor's part of an update for one half of the rows: its actions for obs and next_obs, and its
//! gradient. The rows are cut into halves so that two threads can do it.

use super::critic::{MinimumRows, QFunction};
use super::{Batch, squashed};
use crate::RloxError;
use crate::memory::reserve;
use crate::nn::{Activations, InputGradient, Mlp};

/// The memory for one half of the rows, kept between updates. The halves share nothing.
#[derive(Debug, Default)]
pub(super) struct Half {
    acts: Activations,
    /// The actor's outputs for obs: means and log standard deviations, `[n, 2 * act_dim]`.
    heads: Vec<f32>,
    /// The gradient of the loss by them.
    grad_heads: Vec<f32>,
    /// The gradient of min_i Q_i(s, a) by a, `[n, act_dim]`.
    grad_actions: Vec<f32>,
    /// For each critic, the rows where it attains the minimum.
    minimum: [MinimumRows; 2],
    room: InputGradient,
    /// log pi(a'|s'), `[n]`.
    pub(super) next_log_probs: Vec<f32>,
    /// log pi(a|s), `[n]`.
    pub(super) log_probs: Vec<f32>,
    /// The part of the gradient by the actor's parameters that these rows contribute.
    pub(super) grad: Vec<f32>,
}

/// The rows of a batch that a [`Half`] works on.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchHalf<'a> {
    /// The index in the batch of the first row.
    pub(super) first: usize,
    /// The number of rows.
    pub(super) n: usize,
    /// `[n, obs_dim]`
    pub(super) obs: &'a [f32],
    /// `[n, obs_dim]`
    pub(super) next_obs: &'a [f32],
    /// `[n, act_dim]`, for the actions at obs.
    pub(super) noise: &'a [f32],
    /// `[n, act_dim]`, for the actions at next_obs.
    pub(super) next_noise: &'a [f32],
}

impl<'a> BatchHalf<'a> {
    /// The two halves of a batch; the first one is the larger one where their sizes differ.
    pub(super) fn halves(batch: &Batch<'a>, obs_dim: usize, act_dim: usize) -> (Self, Self) {
        let n = batch.reward.len();
        let half = |first: usize, end: usize| {
            let obs = first * obs_dim..end * obs_dim;
            let noise = first * act_dim..end * act_dim;
            Self {
                first,
                n: end - first,
                obs: &batch.obs[obs.clone()],
                next_obs: &batch.next_obs[obs],
                noise: &batch.noise[noise.clone()],
                next_noise: &batch.next_noise[noise],
            }
        };
        let middle = n.div_ceil(2);
        (half(0, middle), half(middle, n))
    }
}

impl Half {
    /// Makes room for all that an update does with `rows` rows.
    pub(super) fn reserve(
        &mut self,
        actor: &Mlp,
        critics: [&Mlp; 2],
        rows: usize,
    ) -> Result<(), RloxError> {
        self.reserve_draws(actor, rows)?;
        reserve(&mut self.heads, rows.saturating_mul(actor.n_outputs()))?;
        reserve(&mut self.grad_heads, rows.saturating_mul(actor.n_outputs()))?;
        reserve(
            &mut self.grad_actions,
            rows.saturating_mul(actor.n_outputs() / 2),
        )?;
        reserve(&mut self.next_log_probs, rows)?;
        reserve(&mut self.grad, actor.n_params())?;
        for (minimum, critic) in self.minimum.iter_mut().zip(critics) {
            minimum.reserve(rows)?;
            self.room.reserve(critic, rows)?;
        }
        Ok(())
    }

    /// Makes room for [`Self::draw`] of `rows` rows.
    pub(super) fn reserve_draws(&mut self, actor: &Mlp, rows: usize) -> Result<(), RloxError> {
        self.acts.reserve(actor, rows)?;
        reserve(&mut self.log_probs, rows)
    }

    /// Draws an action for each observation and each next observation. Writes the critics' inputs, rows
    /// of observation and action, to `x` and `next_x`, `[n, obs_dim + act_dim]`. Sets the
    /// log-probabilities.
    pub(super) fn act(
        &mut self,
        actor: &Mlp,
        params: &[f32],
        rows: &BatchHalf<'_>,
        x: &mut [f32],
        next_x: &mut [f32],
    ) {
        // obs comes second: the gradient needs the activations of its forward pass, and the next
        // forward pass overwrites them.
        let next = (
            rows.next_obs,
            rows.next_noise,
            next_x,
            &mut self.next_log_probs,
        );
        let now = (rows.obs, rows.noise, x, &mut self.log_probs);
        for (obs, noise, x, log_probs) in [next, now] {
            let heads = actor.forward(params, obs, rows.n, &mut self.acts);
            let obs_dim = actor.n_inputs();
            let act_dim = actor.n_outputs() / 2;
            for (x, obs) in x
                .chunks_exact_mut(obs_dim + act_dim)
                .zip(obs.chunks_exact(obs_dim))
            {
                x[..obs_dim].copy_from_slice(obs);
            }
            log_probs.resize(rows.n, 0.0);
            squashed::sample(heads, noise, act_dim, x, obs_dim + act_dim, log_probs);
            self.heads.clear();
            self.heads.extend_from_slice(heads);
        }
    }

    /// Draws an action for each row of `obs`, to `actions`, `[n, act_dim]`.
    pub(super) fn draw(
        &mut self,
        actor: &Mlp,
        params: &[f32],
        obs: &[f32],
        noise: &[f32],
        actions: &mut [f32],
    ) {
        let act_dim = actor.n_outputs() / 2;
        let n = actions.len() / act_dim;
        let heads = actor.forward(params, obs, n, &mut self.acts);
        self.log_probs.resize(n, 0.0);
        squashed::sample(heads, noise, act_dim, actions, act_dim, &mut self.log_probs);
    }

    /// Sets `grad` to the gradient of the sum over these rows of `alpha log pi(a|s) - min_i Q_i(s, a)`,
    /// divided by `batch_size`. In each row it goes through the critic that attains the minimum. `x` is
    /// as [`Self::act`] wrote it.
    #[expect(clippy::too_many_arguments, reason = "the loss's inputs")]
    pub(super) fn learn(
        &mut self,
        actor: &Mlp,
        params: &[f32],
        critics: [(&QFunction, &[f32]); 2],
        rows: &BatchHalf<'_>,
        x: &[f32],
        alpha: f32,
        batch_size: usize,
    ) {
        let act_dim = actor.n_outputs() / 2;
        self.grad_actions.clear();
        self.grad_actions.resize(rows.n * act_dim, 0.0);
        for (i, minimum) in self.minimum.iter_mut().enumerate() {
            let (critic, params) = critics[i];
            minimum.find(&critic.q, &critics[1 - i].0.q, rows.first, rows.n);
            let grad = critic.guide(params, minimum, act_dim, &mut self.room);
            for (row, grad) in minimum.rows().zip(grad.chunks_exact(act_dim)) {
                let sum = &mut self.grad_actions[(row - rows.first) * act_dim..][..act_dim];
                sum.iter_mut().zip(grad).for_each(|(sum, g)| *sum += g);
            }
        }
        self.grad_heads.resize(self.heads.len(), 0.0);
        squashed::grad(
            &self.heads,
            rows.noise,
            act_dim,
            x,
            actor.n_inputs() + act_dim,
            &self.grad_actions,
            alpha,
            1.0 / batch_size as f32,
            &mut self.grad_heads,
        );
        self.grad.resize(actor.n_params(), 0.0);
        actor.backward(
            params,
            rows.obs,
            rows.n,
            &mut self.acts,
            &self.grad_heads,
            &mut self.grad,
        );
    }
}
