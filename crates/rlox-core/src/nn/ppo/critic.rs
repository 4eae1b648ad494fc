//! The critic's side of the update: the mean squared error of the values, clipped or not.

use super::{Network, Ppo, RolloutData, Side};
use crate::RloxError;
use crate::memory::{reserved, zeros};
use crate::nn::Activations;
use crate::nn::adam::norm_squared;

/// The critic in training.
pub(super) struct Critic<'a> {
    ppo: &'a Ppo,
    network: Network<'a>,
    acts: Activations,
    grad: Vec<f32>,
    grad_out: Vec<f32>,
    obs: Vec<f32>,
    /// The loss of the present minibatch.
    latest_loss: f64,
    /// Its sum over the minibatches that a step was made for.
    pub(super) value_loss: f64,
}

impl<'a> Critic<'a> {
    /// With room for minibatches of `rows` rows.
    pub(super) fn new(ppo: &'a Ppo, network: Network<'a>, rows: usize) -> Result<Self, RloxError> {
        let mut acts = Activations::default();
        acts.reserve(network.mlp, rows)?;
        Ok(Self {
            ppo,
            grad: zeros(network.mlp.n_params())?,
            acts,
            grad_out: reserved(rows)?,
            obs: reserved(rows.saturating_mul(network.mlp.n_inputs()))?,
            network,
            latest_loss: 0.0,
            value_loss: 0.0,
        })
    }
}

impl Side for Critic<'_> {
    fn gradient(&mut self, rollout: &RolloutData<'_>, batch: &[i64]) -> Option<f64> {
        let (mlp, params) = (self.network.mlp, &*self.network.moments.params);
        let rows = batch.len();
        self.ppo
            .gather(rollout.obs, mlp.n_inputs(), batch, &mut self.obs);
        let values = mlp.forward(params, &self.obs, rows, &mut self.acts);

        self.grad_out.clear();
        let mut squares = 0.0;
        for (&value, &i) in values.iter().zip(batch) {
            let (target, advantage) = (rollout.returns[i as usize], rollout.advantages[i as usize]);
            let (value, moves) = match self.ppo.clip_range_vf {
                None => (value, true),
                Some(range) => {
                    let old = target - advantage;
                    let moved = value - old;
                    // Where the value is clipped, the loss does not depend on the network's output.
                    (old + moved.clamp(-range, range), moved.abs() <= range)
                }
            };
            let error = value - target;
            squares += f64::from(error * error);
            let by_value = self.ppo.vf_coef * 2.0 / rows as f32 * error;
            self.grad_out.push(if moves { by_value } else { 0.0 });
        }
        self.latest_loss = squares / rows as f64;

        let (acts, grad) = (&mut self.acts, &mut self.grad);
        mlp.backward(params, &self.obs, rows, acts, &self.grad_out, grad);
        Some(norm_squared(&self.grad))
    }

    fn step(&mut self, t: u64, scale: f32) {
        self.ppo
            .adam
            .step(t, &mut self.network.moments, &self.grad, scale);
        self.value_loss += self.latest_loss;
    }
}
