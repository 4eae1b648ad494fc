//! One of the twin critics: its value of the target, its own step, and what it tells the actor.

use super::Settings;
use crate::RloxError;
use crate::memory::{reserve, zeros};
use crate::nn::adam::Moments;
use crate::nn::{Activations, InputGradient, Mlp};

/// A critic's network, with room for what its update leaves behind.
#[derive(Debug)]
pub(super) struct Critic {
    mlp: Mlp,
    acts: Activations,
    grad_q: Vec<f32>,
    grad: Vec<f32>,
    /// Q'(s', a'), `[rows]`.
    pub(super) next_q: Vec<f32>,
    /// The critic's value of the transitions' own actions, minus y, `[rows]`.
    pub(super) td: Vec<f32>,
    /// Q(s, a) of the actions that the policy takes now, after the step, `[rows]`.
    pub(super) q: Vec<f32>,
}

impl Critic {
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

    /// Makes room for so many rows.
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

    /// Its shape.
    pub(super) fn mlp(&self) -> &Mlp {
        &self.mlp
    }

    /// Length of the parameter vector.
    pub(super) fn n_params(&self) -> usize {
        self.grad.len()
    }

    /// Sets `next_q`, by the target network.
    pub(super) fn look_ahead(&mut self, target: &[f32], next_x: &[f32], rows: usize) {
        let q = self.mlp.forward(target, next_x, rows, &mut self.acts);
        self.next_q.clear();
        self.next_q.extend_from_slice(q);
    }

    /// One step towards `y`, `[rows]`, at `x`; the target network follows. Sets `td`.
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
        self.grad.fill(0.0);
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

    /// Sets `q`, the values of the policy's actions.
    pub(super) fn judge(&mut self, params: &[f32], x: &[f32], rows: usize) {
        let q = self.mlp.forward(params, x, rows, &mut self.acts);
        self.q.clear();
        self.q.extend_from_slice(q);
    }

    /// Gradient of `q` by the action, for the rows of `share` and in its measure; after
    /// [`Self::judge`].
    pub(super) fn guide<'a>(
        &self,
        params: &[f32],
        share: &Share,
        act_dim: usize,
        room: &'a mut InputGradient,
    ) -> &'a [f32] {
        let obs_dim = self.mlp.n_inputs() - act_dim;
        self.mlp
            .input_gradient(params, &self.acts, &share.rows, &share.of, obs_dim, room)
    }
}

/// Rows whose smaller value is one critic's, and how much of it.
#[derive(Debug, Default)]
pub(super) struct Share {
    rows: Vec<usize>,
    /// 1, or 1/2 where the twins agree: the subgradient that torch takes.
    of: Vec<f32>,
}

impl Share {
    /// The rows `first..first + n` where `q` is at most `other`.
    pub(super) fn find(&mut self, q: &[f32], other: &[f32], first: usize, n: usize) {
        self.rows.clear();
        self.of.clear();
        for row in first..first + n {
            if q[row] <= other[row] {
                self.rows.push(row);
                self.of.push(if q[row] < other[row] { 1.0 } else { 0.5 });
            }
        }
    }

    /// Makes room for so many rows.
    pub(super) fn reserve(&mut self, rows: usize) -> Result<(), RloxError> {
        reserve(&mut self.rows, rows)?;
        reserve(&mut self.of, rows)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().copied()
    }
}
