//! PPO's update (Schulman et al. 2017): epochs of minibatch steps of Adam on the loss of the clipped
//! surrogate, the values and the entropy.
//!
//! ```text
//! r_i = exp(log pi(a_i|s_i) - log pi_old(a_i|s_i))
//! L   = -mean min(r A, clip(r, 1 - eps, 1 + eps) A) + c1 mean (V - R)² - c2 mean H     (7) and (9)
//! ```
//!
//! Actor and critic share no parameters, so the update has two sides (`side`) that need each other once
//! in a minibatch: for the norm of the whole gradient, by which both are clipped. A second thread may
//! therefore compute the critic's side, and the result is the same to the bit.
//!
//! The first thread offers the critic's side to the second one (`offer`). If the second one has not
//! begun when the first one has done the actor's side, the first one does the critic's, too. So it
//! never waits for a thread that does not run because other programs use the cores.

mod actor;
mod columns;
mod critic;
mod offer;
mod parts;
mod side;
#[cfg(test)]
mod tests;

use std::thread::{self, Builder, Thread};

use super::acting::check_choices;
use super::adam::{Adam, Moments, clip_scale};
use super::{FlushDenormals, Mlp};
use crate::error::{RloxError, check_len};
use crate::{Real, pool};
use actor::Actor;
use critic::Critic;
use offer::{Done, Offer};
use side::{Pace, Round, Side};

/// A network in training.
#[derive(Debug)]
pub struct Network<'a> {
    /// Its shape.
    pub mlp: &'a Mlp,
    /// Its parameters and Adam's moments of them.
    pub moments: Moments<'a>,
}

/// The actor-critic to train.
#[derive(Debug)]
pub struct ActorCritic<'a> {
    /// Its outputs are the logits of one categorical, of several independent ones side by side or of
    /// independent bits, or the means of a diagonal Gaussian.
    pub actor: Network<'a>,
    /// Its output is the value.
    pub critic: Network<'a>,
    /// The logarithm of a Gaussian's standard deviation, `[act_dim]`, the same in every state; None for
    /// the other distributions.
    pub log_std: Option<Moments<'a>>,
}

/// The actions of `n` transitions.
#[derive(Debug, Clone, Copy)]
pub enum SampledActions<'a> {
    /// Of one categorical: `[n]`, each below the number of logits.
    Discrete(&'a [i64]),
    /// Of several categoricals at once.
    Several {
        /// `[n, nvec.len()]`, each below its number of `nvec`.
        chosen: &'a [i64],
        /// The numbers of categories, which sum to the number of logits.
        nvec: &'a [usize],
    },
    /// Of a Gaussian: `[n, act_dim]`, before clipping to the action space.
    Continuous(&'a [f32]),
    /// Of independent bits: `[n, outputs]`, each 0 or 1.
    Bits(&'a [f32]),
}

/// The `n` transitions of a rollout that an update learns from.
#[derive(Debug, Clone, Copy)]
pub struct RolloutData<'a> {
    /// `[n, obs_dim]`
    pub obs: &'a [f32],
    /// Of the old policy.
    pub actions: SampledActions<'a>,
    /// `[n]`, log pi_old(a|s).
    pub log_probs: &'a [f32],
    /// `[n]`, A.
    pub advantages: &'a [f32],
    /// `[n]`, R.
    pub returns: &'a [f32],
}

/// The hyperparameters of an update, named as in Stable-Baselines3.
#[derive(Debug, Clone, Copy)]
pub struct Ppo {
    /// Transitions of a minibatch; the last one of an epoch may be smaller.
    pub batch_size: usize,
    /// eps of the surrogate.
    pub clip_range: f32,
    /// Whether the advantages of each minibatch are normalised to mean 0 and standard deviation 1.
    pub normalize_advantage: bool,
    /// c2.
    pub ent_coef: f32,
    /// c1.
    pub vf_coef: f32,
    /// V is clipped to this distance from the value at the time of the rollout, R - A; None clips
    /// nothing.
    pub clip_range_vf: Option<f32>,
    /// The update ends before the first minibatch whose approximate KL divergence, the mean of
    /// r - 1 - log r, is above 1.5 times this.
    pub target_kl: Option<f64>,
    /// The norm that the gradient is clipped to.
    pub max_grad_norm: f64,
    /// The optimiser.
    pub adam: Adam,
    /// R24: whether the loss of one categorical is computed by columns, and rows of few numbers are
    /// gathered by their width. The results are the same to the bit.
    pub by_columns: bool,
}

/// Means over the minibatches that a step was made for; NaN if there was none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// How many minibatches these were.
    pub n_minibatches: usize,
    /// L.
    pub loss: f64,
    /// The first term of L.
    pub policy_loss: f64,
    /// Mean of (V - R)².
    pub value_loss: f64,
    /// Minus the mean entropy.
    pub entropy_loss: f64,
    /// Mean of r - 1 - log r, an estimate of KL(pi_old || pi).
    pub approx_kl: f64,
    /// The fraction of r outside of the clip range.
    pub clip_fraction: f64,
}

/// Transitions times parameters from which on an update is worth starting a thread.
const PARALLEL_WORK: usize = 2_000_000;

impl Ppo {
    /// One step for each minibatch of each epoch. The first one is number `step + 1` of Adam's steps.
    ///
    /// `order` has the epochs one after another, each a permutation of the `n` transitions' indices.
    /// With `threads` above 1, a second thread may help, where there is enough to do and a core to do
    /// it on.
    ///
    /// # Errors
    /// If lengths do not agree, an index is not below `n` or an action is not one of the
    /// distribution's, a clip range or `target_kl` is negative or NaN, or there is no memory for a
    /// minibatch.
    pub fn update(
        &self,
        policy: ActorCritic<'_>,
        rollout: &RolloutData<'_>,
        order: &[i64],
        step: u64,
        threads: usize,
    ) -> Result<Figures, RloxError> {
        let n = rollout.log_probs.len();
        check(&policy, rollout, self.batch_size)?;
        not_negative("clip_range", self.clip_range)?;
        not_negative("clip_range_vf", self.clip_range_vf.unwrap_or(0.0))?;
        not_negative("target_kl", self.target_kl.unwrap_or(0.0))?;
        if n == 0 || order.is_empty() {
            return Err(RloxError::argument(
                "order",
                "is empty, expected an epoch or more",
            ));
        }
        let in_range = |&i: &i64| usize::try_from(i).is_ok_and(|i| i < n);
        if !order.len().is_multiple_of(n) || !order.iter().all(in_range) {
            return Err(RloxError::argument(
                "order",
                format!("expected epochs of {n} indices, each from 0 to {}", n - 1),
            ));
        }
        if step.checked_add(order.len() as u64).is_none() {
            return Err(RloxError::argument(
                "step",
                format!("is {step}, expected room for the steps of this update"),
            ));
        }
        let n_params = policy.actor.mlp.n_params() + policy.critic.mlp.n_params();
        let work = order.len().saturating_mul(n_params);
        let pace = Pace::new(n_params as f64 / policy.actor.mlp.n_params() as f64);
        let rows = self.batch_size.min(n);
        let mut actor = Actor::new(self, policy.actor, policy.log_std, rows)?;
        let critic = Critic::new(self, policy.critic, rows)?;
        let epochs = order.chunks(n);
        let minibatches = epochs.flat_map(|epoch| epoch.chunks(self.batch_size));
        let minibatches = minibatches.zip(step + 1..);

        let offer = Offer::new(Round::new(critic));
        let worth_it = threads > 1 && work >= PARALLEL_WORK && pool::is_quiet();
        // If the system cannot start a thread, the first one does all the work.
        if worth_it && pool::has_room_for(1) {
            thread::scope(|scope| {
                let helping = || {
                    let _flush = FlushDenormals::new();
                    offer.help(|round| round.run(rollout));
                };
                let started = Builder::new().spawn_scoped(scope, helping);
                let helper = started.as_ref().map(|helper| helper.thread()).ok();
                let _closing = helper.map(|helper| offer.closing(|| helper.unpark()));
                self.learn(&mut actor, &offer, helper, pace, rollout, minibatches);
            });
        } else {
            self.learn(&mut actor, &offer, None, pace, rollout, minibatches);
        }
        let _flush = FlushDenormals::new();
        let critic = offer.into_work().settled();
        Ok(self.figures(&actor, &critic))
    }

    /// A step of both sides for each of the minibatches `(rows, number of the step)`. The critic's step
    /// for the last one is still due afterwards.
    fn learn<'a>(
        &self,
        actor: &mut impl Side,
        critic: &Offer<Round<'a, impl Side>>,
        helper: Option<&Thread>,
        mut pace: Pace,
        rollout: &RolloutData<'_>,
        minibatches: impl Iterator<Item = (&'a [i64], u64)>,
    ) {
        let _flush = FlushDenormals::new();
        let whole = self.batch_size.min(rollout.log_probs.len());
        for (batch, t) in minibatches {
            critic.work().batch = batch;
            let helped = pace.begin(helper, batch.len() == whole);
            if let Some(helper) = helped {
                critic.open(|| helper.unpark());
            }
            let norm = actor.gradient(rollout, batch);
            pace.own_side_done();
            let done = critic.finish(helped.is_some(), |round| round.run(rollout));
            let Some(norm) = norm.filter(|_| done != Done::Half) else {
                return;
            };
            let mut round = critic.work();
            let scale = clip_scale(norm + round.norm.unwrap_or(f64::NAN), self.max_grad_norm);
            round.step = Some((t, scale));
            drop(round);
            actor.step(t, scale);
            pace.end(done);
        }
    }

    fn figures(&self, actor: &Actor<'_>, critic: &Critic<'_>) -> Figures {
        let n_minibatches = actor.sums.n_minibatches as f64;
        let policy_loss = actor.sums.policy_loss / n_minibatches;
        let entropy_loss = actor.sums.entropy_loss / n_minibatches;
        let value_loss = critic.value_loss / n_minibatches;
        Figures {
            n_minibatches: actor.sums.n_minibatches,
            loss: policy_loss
                + f64::from(self.vf_coef) * value_loss
                + f64::from(self.ent_coef) * entropy_loss,
            policy_loss,
            value_loss,
            entropy_loss,
            approx_kl: actor.sums.approx_kl / n_minibatches,
            clip_fraction: actor.sums.clip_fraction / n_minibatches,
        }
    }
}

impl Ppo {
    /// Makes `to` the rows of `from` with the indices `batch`, one after another; a row has `width`
    /// elements.
    fn gather(&self, from: &[f32], width: usize, batch: &[i64], to: &mut Vec<f32>) {
        to.clear();
        match width {
            1 if self.by_columns => gather_arrays::<1>(from, batch, to),
            2 if self.by_columns => gather_arrays::<2>(from, batch, to),
            3 if self.by_columns => gather_arrays::<3>(from, batch, to),
            4 if self.by_columns => gather_arrays::<4>(from, batch, to),
            6 if self.by_columns => gather_arrays::<6>(from, batch, to),
            8 if self.by_columns => gather_arrays::<8>(from, batch, to),
            _ => batch.iter().for_each(|&i| {
                let start = i as usize * width;
                to.extend_from_slice(&from[start..start + width]);
            }),
        }
    }
}

/// Appends the rows of `from` with the indices `batch`, of W elements each, to the empty `to`. The compiler
/// makes moves of them, where for any width it would call `memmove` for each.
fn gather_arrays<const W: usize>(from: &[f32], batch: &[i64], to: &mut Vec<f32>) {
    let (rows, _) = from.as_chunks::<W>();
    to.resize(batch.len() * W, 0.0);
    for (to, &i) in to.as_chunks_mut::<W>().0.iter_mut().zip(batch) {
        *to = rows[i as usize];
    }
}

fn check(
    policy: &ActorCritic<'_>,
    rollout: &RolloutData<'_>,
    batch_size: usize,
) -> Result<(), RloxError> {
    let (actor, critic) = (policy.actor.mlp, policy.critic.mlp);
    let n = rollout.log_probs.len();
    if batch_size == 0 {
        return Err(RloxError::argument(
            "batch_size",
            "is 0, expected at least 1",
        ));
    }
    check_len("obs", rollout.obs.len(), n * actor.n_inputs())?;
    check_len("obs", rollout.obs.len(), n * critic.n_inputs())?;
    check_len("advantages", rollout.advantages.len(), n)?;
    check_len("returns", rollout.returns.len(), n)?;
    check_len("outputs of the critic", critic.n_outputs(), 1)?;
    for (name, network) in [("actor", &policy.actor), ("critic", &policy.critic)] {
        check_moments(name, &network.moments, network.mlp.n_params())?;
    }
    match (rollout.actions, &policy.log_std) {
        (SampledActions::Discrete(actions), None) => check_chosen(actions, n, &[actor.n_outputs()]),
        (SampledActions::Several { chosen, nvec }, None) => {
            check_choices(nvec, actor.n_outputs())?;
            check_chosen(chosen, n, nvec)
        }
        (SampledActions::Bits(actions), None) => {
            check_len("actions", actions.len(), n * actor.n_outputs())?;
            match actions.iter().find(|&&bit| bit != 0.0 && bit != 1.0) {
                None => Ok(()),
                Some(found) => Err(RloxError::argument(
                    "actions",
                    format!("holds {found}, expected bits, 0 or 1"),
                )),
            }
        }
        (SampledActions::Continuous(actions), Some(log_std)) => {
            check_len("actions", actions.len(), n * actor.n_outputs())?;
            check_moments("log_std", log_std, actor.n_outputs())
        }
        _ => Err(RloxError::argument(
            "log_std",
            "belongs to continuous actions, and to them alone",
        )),
    }
}

fn check_chosen(actions: &[i64], n: usize, nvec: &[usize]) -> Result<(), RloxError> {
    check_len("actions", actions.len(), n.saturating_mul(nvec.len()))?;
    let within = |&(&action, &n): &(&i64, &usize)| usize::try_from(action).is_ok_and(|a| a < n);
    match actions
        .iter()
        .zip(nvec.iter().cycle())
        .find(|pair| !within(pair))
    {
        None => Ok(()),
        Some((action, n)) => Err(RloxError::argument(
            "actions",
            format!("holds {action}, expected 0 to {}", n.saturating_sub(1)),
        )),
    }
}

fn not_negative<T: Real>(argument: &'static str, value: T) -> Result<(), RloxError> {
    if value >= T::zero() {
        return Ok(());
    }
    let problem = format!("is {value}, expected at least 0");
    Err(RloxError::argument(argument, problem))
}

fn check_moments(name: &'static str, of: &Moments<'_>, n: usize) -> Result<(), RloxError> {
    check_len(name, of.params.len(), n)?;
    check_len(name, of.exp_avg.len(), n)?;
    check_len(name, of.exp_avg_sq.len(), n)
}
