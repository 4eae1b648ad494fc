//! One update of Soft Actor-Critic, Haarnoja et al. 2018b (arXiv 1812.05905): of the two Q functions
//! (the critics), the actor, the temperature and the target networks.
//!
//! The actor draws a for obs and a' for next_obs. With alpha = exp(log_alpha), w the importance weights
//! of a prioritised buffer (otherwise 1), and means over the batch, the losses are
//!
//! ```text
//! y        = r + gamma (1 - terminated) (min_i Q_i'(s', a') - alpha log pi(a'|s'))
//! critics: mean of w ((Q_1 - y)^2 + (Q_2 - y)^2) / 2
//! actor:   mean of alpha log pi(a|s) - min_i Q_i(s, a), with the critics just updated
//! alpha:   mean of -log_alpha (log pi(a|s) + target_entropy)
//! targets: Q_i' <- (1 - tau) Q_i' + tau Q_i
//! ```
//!
//! The work can be shared by two threads: each takes one critic, and half of the rows in what the actor
//! does. It is cut in the same way for one thread, so that the results are the same to the bit.

mod actor;
mod before;
mod critic;
pub mod squashed;
#[cfg(test)]
mod tests;
mod threads;

use super::Mlp;
use super::adam::{Adam, Moments};
use crate::error::check_len;
use crate::{RloxError, pool};
use actor::{BatchHalf, Half};
use critic::QFunction;
use threads::both;

/// The parameters that an update changes, with Adam's moments.
#[derive(Debug)]
pub struct Learners<'a> {
    /// The actor's. Its outputs are means, then log standard deviations.
    pub actor: Moments<'a>,
    /// Those of both critics, one after the other.
    pub critics: Moments<'a>,
    /// Those of the critics' target networks, in the same order.
    pub targets: &'a mut [f32],
    /// One number, which changes only if there is [`Settings::alpha`].
    pub log_alpha: Moments<'a>,
}

/// Transitions sampled from a buffer, each column in row-major order, and noise for the actor.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// `[rows, obs_dim]`
    pub obs: &'a [f32],
    /// `[rows, act_dim]`, in [-1, 1]
    pub action: &'a [f32],
    /// `[rows]`
    pub reward: &'a [f32],
    /// `[rows, obs_dim]`
    pub next_obs: &'a [f32],
    /// `[rows]`
    pub terminated: &'a [bool],
    /// `[rows]`, the importance weights of a prioritised buffer.
    pub weights: Option<&'a [f32]>,
    /// `[rows, act_dim]`, standard normals for the actions at next_obs.
    pub next_noise: &'a [f32],
    /// `[rows, act_dim]`, standard normals for the actions at obs.
    pub noise: &'a [f32],
}

/// Adam, and the number of its step, from 1 on.
pub type AdamStep = (Adam, u64);

/// Hyperparameters of one update.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The discount factor.
    pub gamma: f32,
    /// The weight of the new parameters in the Polyak averaging of the target networks.
    pub tau: f64,
    /// The entropy that a learned temperature aims at, in nats.
    pub target_entropy: f32,
    /// The step of the actor.
    pub actor: AdamStep,
    /// The step of the critics.
    pub critic: AdamStep,
    /// The step of the temperature; None leaves the temperature as it is.
    pub alpha: Option<AdamStep>,
}

/// The losses, each before the step that it leads to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Losses {
    /// Equation 5, summed over both critics.
    pub critic: f32,
    /// Equation 7.
    pub actor: f32,
    /// Equation 18, in log alpha; None if the temperature is left as it is.
    pub alpha: Option<f32>,
}

/// The networks' shapes, and the memory of an update, kept between updates.
#[derive(Debug)]
pub struct Sac {
    actor: Mlp,
    critics: [QFunction; 2],
    halves: [Half; 2],
    /// Inputs of the critics, `[rows, obs_dim + act_dim]`: obs and the batch's actions.
    x: Vec<f32>,
    /// obs and the actor's actions.
    now_x: Vec<f32>,
    /// next_obs and the actor's actions.
    next_x: Vec<f32>,
    /// The critics' target, `[rows]`.
    y: Vec<f32>,
    /// The mean over both critics of |Q - y|, `[rows]`.
    td_errors: Vec<f32>,
}

impl Sac {
    /// For an actor `obs_dim -> 2 * act_dim` and critics `obs_dim + act_dim -> 1`.
    ///
    /// # Errors
    /// If the networks have other widths, or there is no memory.
    pub fn new(actor: Mlp, critics: [Mlp; 2]) -> Result<Self, RloxError> {
        if !actor.n_outputs().is_multiple_of(2) {
            return Err(RloxError::argument(
                "actor",
                format!(
                    "has {} outputs, expected a mean and a log deviation for each action value",
                    actor.n_outputs()
                ),
            ));
        }
        let inputs = actor.n_inputs() + actor.n_outputs() / 2;
        for critic in &critics {
            check_len("critic's input", critic.n_inputs(), inputs)?;
            check_len("critic's output", critic.n_outputs(), 1)?;
        }
        let [one, other] = critics;
        Ok(Self {
            actor,
            critics: [QFunction::new(one)?, QFunction::new(other)?],
            halves: Default::default(),
            x: Vec::new(),
            now_x: Vec::new(),
            next_x: Vec::new(),
            y: Vec::new(),
            td_errors: Vec::new(),
        })
    }

    /// Elements of an observation.
    pub fn obs_dim(&self) -> usize {
        self.actor.n_inputs()
    }

    /// Elements of an action.
    pub fn act_dim(&self) -> usize {
        self.actor.n_outputs() / 2
    }

    /// The absolute TD errors of the latest update, `[rows]`: the mean over both critics of |Q - y|.
    pub fn td_errors(&self) -> &[f32] {
        &self.td_errors
    }

    /// One update, with `two_threads` on two threads of Rayon's pool, else on this one.
    ///
    /// # Errors
    /// If a slice has another length than the shapes say, the batch is empty, a step of Adam has the
    /// number 0, or there is no memory for the batch's rows. Nothing has changed then.
    pub fn update(
        &mut self,
        learners: Learners<'_>,
        batch: &Batch<'_>,
        settings: &Settings,
        two_threads: bool,
    ) -> Result<Losses, RloxError> {
        self.check(&learners, batch, settings)?;
        self.reserve(batch.reward.len())?;
        Ok(if two_threads && pool::threads() > 1 {
            threads::in_pool(|| self.run(learners, batch, settings, true))
        } else {
            self.run(learners, batch, settings, false)
        })
    }

    fn run(
        &mut self,
        learners: Learners<'_>,
        batch: &Batch<'_>,
        settings: &Settings,
        two_threads: bool,
    ) -> Losses {
        let Learners {
            actor: mut actor_learner,
            mut critics,
            targets,
            mut log_alpha,
        } = learners;
        let Self {
            actor,
            critics: [critic1, critic2],
            halves: [half1, half2],
            x,
            now_x,
            next_x,
            y,
            td_errors,
        } = self;
        let (mut learner1, mut learner2) = split_at_mut(&mut critics, critic1.n_params());
        let (target1, target2) = targets.split_at_mut(critic1.n_params());
        let n = batch.reward.len();
        let (obs_dim, act_dim) = (actor.n_inputs(), actor.n_outputs() / 2);
        let width = obs_dim + act_dim;
        let alpha = log_alpha.params[0].exp();
        let (rows1, rows2) = BatchHalf::halves(batch, obs_dim, act_dim);

        // The actor's actions for obs and next_obs.
        for inputs in [&mut *x, now_x, next_x] {
            inputs.resize(n * width, 0.0);
        }
        let (now_x1, now_x2) = now_x.split_at_mut(rows1.n * width);
        let (next_x1, next_x2) = next_x.split_at_mut(rows1.n * width);
        let params = &*actor_learner.params;
        both(
            two_threads,
            || half1.act(actor, params, &rows1, now_x1, next_x1),
            || half2.act(actor, params, &rows2, now_x2, next_x2),
        );

        // The critics' target.
        both(
            two_threads,
            || critic1.look_ahead(target1, next_x, n),
            || critic2.look_ahead(target2, next_x, n),
        );
        let next_log_probs = half1.next_log_probs.iter().chain(&half2.next_log_probs);
        y.clear();
        y.extend(next_log_probs.enumerate().map(|(row, log_prob)| {
            let goes_on = f32::from(u8::from(!batch.terminated[row]));
            let next_q = min(critic1.next_q[row], critic2.next_q[row]);
            batch.reward[row] + settings.gamma * goes_on * (next_q - alpha * log_prob)
        }));

        // The critics' step, and their new values of the actor's actions.
        for ((x, obs), action) in x
            .chunks_exact_mut(width)
            .zip(batch.obs.chunks_exact(obs_dim))
            .zip(batch.action.chunks_exact(act_dim))
        {
            x[..obs_dim].copy_from_slice(obs);
            x[obs_dim..].copy_from_slice(action);
        }
        let learn = |critic: &mut QFunction, learner: &mut Moments<'_>, target: &mut [f32]| {
            critic.learn(learner, target, settings, x, y, batch.weights);
            critic.judge(learner.params, now_x, n);
        };
        both(
            two_threads,
            || learn(critic1, &mut learner1, target1),
            || learn(critic2, &mut learner2, target2),
        );

        // The actor's step.
        let critics = [
            (&*critic1, &*learner1.params),
            (&*critic2, &*learner2.params),
        ];
        let (now_x1, now_x2) = now_x.split_at(rows1.n * width);
        both(
            two_threads,
            || half1.learn(actor, params, critics, &rows1, now_x1, alpha, n),
            || half2.learn(actor, params, critics, &rows2, now_x2, alpha, n),
        );
        let middle = actor.n_params() / 2;
        let (mut front, mut back) = split_at_mut(&mut actor_learner, middle);
        let (grad1, grad2) = half1.grad.split_at_mut(middle);
        let (other1, other2) = half2.grad.split_at(middle);
        let step = |learner: &mut Moments<'_>, grad: &mut [f32], other: &[f32]| {
            grad.iter_mut()
                .zip(other)
                .for_each(|(g, other)| *g += other);
            let (adam, t) = settings.actor;
            adam.step(t, learner, grad, 1.0);
        };
        both(
            two_threads,
            || step(&mut front, grad1, other1),
            || step(&mut back, grad2, other2),
        );

        // The temperature's step.
        let log_probs = half1.log_probs.iter().chain(&half2.log_probs);
        let alpha_loss = settings.alpha.map(|(adam, t)| {
            let mean = mean(
                log_probs
                    .clone()
                    .map(|log_prob| log_prob + settings.target_entropy),
            );
            let loss = -log_alpha.params[0] * mean;
            adam.step(t, &mut log_alpha, &[-mean], 1.0);
            loss
        });

        let tds = || critic1.td.iter().zip(&critic2.td);
        td_errors.clear();
        td_errors.extend(tds().map(|(td1, td2)| 0.5 * (td1.abs() + td2.abs())));
        Losses {
            critic: mean(tds().enumerate().map(|(row, (td1, td2))| {
                batch.weights.map_or(0.5, |w| 0.5 * w[row]) * (td1 * td1 + td2 * td2)
            })),
            actor: mean(
                log_probs
                    .enumerate()
                    .map(|(row, log_prob)| alpha * log_prob - min(critic1.q[row], critic2.q[row])),
            ),
            alpha: alpha_loss,
        }
    }

    /// Draws an action for each row of `obs`, `[n, obs_dim]`, to `actions`, `[n, act_dim]`, by the
    /// actor with the parameters `params` and standard normals `noise`, `[n, act_dim]`.
    ///
    /// # Errors
    /// If a slice has another length than the shapes say, or there is no memory.
    pub fn act(
        &mut self,
        params: &[f32],
        obs: &[f32],
        noise: &[f32],
        actions: &mut [f32],
    ) -> Result<(), RloxError> {
        let (obs_dim, act_dim) = (self.obs_dim(), self.act_dim());
        let n = actions.len() / act_dim;
        check_len("params", params.len(), self.actor.n_params())?;
        check_len("obs", obs.len(), n * obs_dim)?;
        check_len("noise", noise.len(), n * act_dim)?;
        self.halves[0].reserve_draws(&self.actor, n)?;
        self.halves[0].draw(&self.actor, params, obs, noise, actions);
        Ok(())
    }
}

fn split_at_mut<'a>(moments: &'a mut Moments<'_>, at: usize) -> (Moments<'a>, Moments<'a>) {
    let (params, params2) = moments.params.split_at_mut(at);
    let (exp_avg, exp_avg2) = moments.exp_avg.split_at_mut(at);
    let (exp_avg_sq, exp_avg_sq2) = moments.exp_avg_sq.split_at_mut(at);
    (
        Moments {
            params,
            exp_avg,
            exp_avg_sq,
        },
        Moments {
            params: params2,
            exp_avg: exp_avg2,
            exp_avg_sq: exp_avg_sq2,
        },
    )
}

/// The smaller number; NaN if either is NaN, so that a critic that has diverged shows. `f32::min` would
/// return the other one.
fn min(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}

fn mean(values: impl Iterator<Item = f32>) -> f32 {
    let (n, sum) = values.fold((0u32, 0.0), |(n, sum), x| (n + 1, sum + f64::from(x)));
    (sum / f64::from(n)) as f32
}
