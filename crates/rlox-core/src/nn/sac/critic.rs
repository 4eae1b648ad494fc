//! One of the two critics (the paper's Q functions): its part of the target y, its own step, and the
//! gradient of its value by the action, which the actor learns from.

use super::Settings;
use crate::RloxError;
use crate::memory::{reserve, zeros};
use crate::nn::adam::Moments;
use crate::nn::{Activations, InputGradient, Mlp};

/// A critic's network, and the memory of its update, kept between updates.
#[derive(Debug)]
pub(super) struct QFunction {
    mlp: Mlp,
    acts: Activations,
    grad_q: Vec<f32>,
    grad: Vec<f32>,
    /// Q'(s', a') of the target network, `[rows]`.
    pub(super) next_q: Vec<f32>,
    /// The TD errors Q(s, a) - y of the batch's actions, `[rows]`.
    pub(super) td: Vec<f32>,
    /// Q(s, a) of the actor's actions, after the critic's step, `[rows]`.
    pub(super) q: Vec<f32>,
}

impl QFunction {
    pub(super) fn new(mlp: Mlp) -> Result<Self, RloxError> {
        Ok(Self {
            grad: zeros(mlp.n_params())?,
            mlp,
            acts: Activations::default(),
            grad_q: Vec::new(),
            next_q: Vec::new(),
            td: Vec::new(),
            q: Vec::new(),
        })
    }

    /// Allocates the memory for `rows` rows.
    pub(super) fn reserve(&mut self, rows: usize) -> Result<(), RloxError> {
        self.acts.reserve(&self.mlp, rows)?;
        for column in [
            &mut self.grad_q,
            &mut self.next_q,
            &mut self.td,
            &mut self.q,
        ] {
            reserve(column, rows)?;
        }
        Ok(())
    }

    /// The network's shape.
    pub(super) fn mlp(&self) -> &Mlp {
        &self.mlp
    }

    /// The length of the parameter vector.
    pub(super) fn n_params(&self) -> usize {
        self.grad.len()
    }

    /// Sets `next_q` by the target network, whose parameters are `target`.
    pub(super) fn look_ahead(&mut self, target: &[f32], next_x: &[f32], rows: usize) {
        let q = self.mlp.forward(target, next_x, rows, &mut self.acts);
        self.next_q.clear();
        self.next_q.extend_from_slice(q);
    }

    /// Makes one step on half the mean squared error between Q at `x` and `y`, `[rows]`, each row times
    /// its importance weight if there are `weights`. Then moves the target network by Polyak averaging.
    /// Sets `td`.
    pub(super) fn learn(
        &mut self,
        trained: &mut Moments<'_>,
        target: &mut [f32],
        settings: &Settings,
        x: &[f32],
        y: &[f32],
        weights: Option<&[f32]>,
    ) {
        let rows = y.len();
        let q = self.mlp.forward(trained.params, x, rows, &mut self.acts);
        self.td.clear();
        self.td.extend(q.iter().zip(y).map(|(q, y)| q - y));
        let scale = 1.0 / rows as f32;
        self.grad_q.clear();
        self.grad_q.extend(self.td.iter().map(|td| scale * td));
        if let Some(weights) = weights {
            let pairs = self.grad_q.iter_mut().zip(weights);
            pairs.for_each(|(grad, weight)| *grad *= weight);
        }
        self.mlp.backward(
            trained.params,
            x,
            rows,
            &mut self.acts,
            &self.grad_q,
            &mut self.grad,
        );
        let (adam, t) = settings.critic;
        adam.step_and_follow(t, trained, &self.grad, target, settings.tau);
    }

    /// Sets `q`, the values of the actor's actions, which are in `x`.
    pub(super) fn judge(&mut self, params: &[f32], x: &[f32], rows: usize) {
        let q = self.mlp.forward(params, x, rows, &mut self.acts);
        self.q.clear();
        self.q.extend_from_slice(q);
    }

    /// The gradient of min_i Q_i(s, a) by a in the rows of `minimum`, `[rows, act_dim]`. To be called
    /// after [`Self::judge`], whose activations it uses.
    pub(super) fn guide<'a>(
        &self,
        params: &[f32],
        minimum: &MinimumRows,
        act_dim: usize,
        room: &'a mut InputGradient,
    ) -> &'a [f32] {
        let obs_dim = self.mlp.n_inputs() - act_dim;
        self.mlp.input_gradient(
            params,
            &self.acts,
            &minimum.rows,
            &minimum.subgradient,
            obs_dim,
            room,
        )
    }
}

/// The rows where one critic attains the minimum of both.
#[derive(Debug, Default)]
pub(super) struct MinimumRows {
    rows: Vec<usize>,
    /// The derivative of the minimum by this critic's value in each of these rows: 1, or 1/2 where both
    /// values are equal, as in torch.
    subgradient: Vec<f32>,
}

impl MinimumRows {
    /// Finds the rows in `first..first + n` where `q` is at most `other`.
    pub(super) fn find(&mut self, q: &[f32], other: &[f32], first: usize, n: usize) {
        self.rows.clear();
        self.subgradient.clear();
        for row in first..first + n {
            if q[row] <= other[row] {
                self.rows.push(row);
                self.subgradient
                    .push(if q[row] < other[row] { 1.0 } else { 0.5 });
            }
        }
    }

    /// Allocates the memory for `rows` rows.
    pub(super) fn reserve(&mut self, rows: usize) -> Result<(), RloxError> {
        reserve(&mut self.rows, rows)?;
        reserve(&mut self.subgradient, rows)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().copied()
    }
}
