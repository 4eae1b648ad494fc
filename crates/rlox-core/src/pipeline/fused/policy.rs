//! The policy of a fused rollout: a network for the actions' distribution, one for the values.

use std::f32::consts::TAU;

use crate::env::spaces::{Actions, Space};
use crate::error::{RloxError, check_len};
use crate::memory::reserved;
use crate::nn::{PackedMlp, check_log_std};
use crate::pipeline::rollout::ActionBatch;

/// An actor and a critic for the environments of one kind.
#[derive(Debug, Clone)]
pub struct MlpPolicy {
    pub(super) actor: PackedMlp,
    pub(super) critic: PackedMlp,
    head: Head,
}

/// The distribution that the actor's outputs stand for.
#[derive(Debug, Clone)]
enum Head {
    /// They are logits.
    Categorical,
    /// They are the means of independent normals.
    Gaussian(Gaussian),
}

#[derive(Debug, Clone)]
pub(super) struct Gaussian {
    log_std: Vec<f32>,
    std: Vec<f32>,
    /// 1 / std.
    scale: Vec<f32>,
    /// Bounds of the action space.
    low: Vec<f32>,
    high: Vec<f32>,
}

impl MlpPolicy {
    /// A categorical policy for a discrete `action_space`, else a Gaussian one with the deviations
    /// exp(`log_std`), free of the observation; `log_std` is empty for a categorical one.
    ///
    /// # Errors
    /// If the networks or `log_std` do not fit the environments.
    pub fn new(
        actor: PackedMlp,
        critic: PackedMlp,
        log_std: &[f32],
        obs_dim: usize,
        action_space: &Space,
    ) -> Result<Self, RloxError> {
        let (outputs, deviations, head) = match action_space {
            Space::Discrete(n) => (*n, 0, Head::Categorical),
            Space::Box { low, high } => {
                let gaussian = Gaussian {
                    log_std: log_std.to_vec(),
                    std: log_std.iter().map(|x| x.exp()).collect(),
                    scale: log_std.iter().map(|x| (-x).exp()).collect(),
                    low: low.clone(),
                    high: high.clone(),
                };
                (low.len(), low.len(), Head::Gaussian(gaussian))
            }
        };
        check_len("log_std", log_std.len(), deviations)?;
        check_log_std(log_std)?;
        check_shape("actor", &actor, [obs_dim, outputs])?;
        check_shape("critic", &critic, [obs_dim, 1])?;
        Ok(Self {
            actor,
            critic,
            head,
        })
    }

    /// Random numbers that an action takes.
    pub fn noise_per_action(&self) -> usize {
        match &self.head {
            Head::Categorical => 1,
            Head::Gaussian(gaussian) => gaussian.std.len(),
        }
    }

    /// Whether those are standard normal, or else uniform in [0, 1).
    pub(super) fn takes_normals(&self) -> bool {
        matches!(self.head, Head::Gaussian(_))
    }

    /// What samples `n` actions, those of `n_envs` environments at a time.
    pub(super) fn sampler(&self, n: usize, n_envs: usize) -> Result<Sampler<'_>, RloxError> {
        Ok(match &self.head {
            Head::Categorical => Sampler::Categorical {
                actions: reserved(n)?,
            },
            Head::Gaussian(gaussian) => Sampler::Gaussian {
                gaussian,
                actions: reserved(n * gaussian.std.len())?,
                clipped: reserved(n_envs * gaussian.std.len())?,
            },
        })
    }
}

/// Samples actions and keeps them.
pub(super) enum Sampler<'a> {
    Categorical {
        actions: Vec<i64>,
    },
    Gaussian {
        gaussian: &'a Gaussian,
        actions: Vec<f32>,
        /// Those since the environments were last stepped, within their bounds.
        clipped: Vec<f32>,
    },
}

impl Sampler<'_> {
    /// Samples the next action from the actor's `outputs` and the `noise` of one observation;
    /// returns its log-probability.
    #[inline]
    pub(super) fn act(&mut self, outputs: &[f32], noise: &[f32]) -> Result<f32, RloxError> {
        let log_prob = match self {
            Self::Categorical { actions } => {
                let (action, log_prob) = categorical(outputs, noise[0]);
                actions.push(action as i64);
                log_prob
            }
            Self::Gaussian {
                gaussian,
                actions,
                clipped,
            } => gaussian.sample(outputs, noise, actions, clipped),
        };
        if !log_prob.is_finite() {
            return Err(no_action(outputs, noise));
        }
        Ok(log_prob)
    }

    /// The latest actions of `n` environments, as they take them.
    pub(super) fn latest(&self, n: usize) -> Actions<'_> {
        match self {
            Self::Categorical { actions } => Actions::Discrete(&actions[actions.len() - n..]),
            Self::Gaussian { clipped, .. } => Actions::Continuous(clipped),
        }
    }

    /// Forgets what no environment needs any more.
    pub(super) fn stepped(&mut self) {
        if let Self::Gaussian { clipped, .. } = self {
            clipped.clear();
        }
    }

    pub(super) fn into_actions(self) -> ActionBatch {
        match self {
            Self::Categorical { actions } => ActionBatch::Discrete(actions),
            Self::Gaussian { actions, .. } => ActionBatch::Continuous(actions),
        }
    }
}

/// The first category whose cumulative probability exceeds `uniform`, and its log-probability.
#[inline]
fn categorical(logits: &[f32], uniform: f32) -> (usize, f32) {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| (logit - max).exp();
    let total: f32 = logits.iter().map(|&logit| weight(logit)).sum();
    let target = uniform * total;
    let mut sum = 0.0;
    let chosen = logits.iter().position(|&logit| {
        sum += weight(logit);
        sum > target
    });
    let chosen = chosen.unwrap_or(logits.len() - 1);
    (chosen, logits[chosen] - max - total.ln())
}

impl Gaussian {
    /// Appends mean + std * noise to `actions` and, within bounds, to `clipped`; returns its
    /// log-density.
    #[inline]
    fn sample(
        &self,
        means: &[f32],
        noise: &[f32],
        actions: &mut Vec<f32>,
        clipped: &mut Vec<f32>,
    ) -> f32 {
        let half_log_tau = 0.5 * TAU.ln();
        let mut log_prob = 0.0;
        for (i, (&mean, &noise)) in means.iter().zip(noise).enumerate() {
            let action = mean + self.std[i] * noise;
            let z = (action - mean) * self.scale[i];
            log_prob += -0.5 * z * z - self.log_std[i] - half_log_tau;
            clipped.push(action.max(self.low[i]).min(self.high[i]));
            actions.push(action);
        }
        log_prob
    }
}

fn check_shape(
    argument: &'static str,
    net: &PackedMlp,
    expected: [usize; 2],
) -> Result<(), RloxError> {
    let found = [net.mlp().n_inputs(), net.mlp().n_outputs()];
    if found == expected {
        return Ok(());
    }
    let problem = format!(
        "maps {} to {} numbers, expected {} to {}",
        found[0], found[1], expected[0], expected[1]
    );
    Err(RloxError::argument(argument, problem))
}

/// The error for an action without a finite log-probability: names what is to blame.
#[cold]
fn no_action(outputs: &[f32], noise: &[f32]) -> RloxError {
    let finite = |numbers: &[f32]| numbers.iter().all(|x| x.is_finite());
    let (argument, problem) = if !finite(outputs) {
        (
            "actor",
            format!("gives {outputs:?}, from which no action can be drawn"),
        )
    } else if !finite(noise) {
        ("noise", format!("holds {noise:?}"))
    } else {
        (
            "log_std",
            format!("with the means {outputs:?} gives an action that overflows"),
        )
    };
    RloxError::argument(argument, format!("{problem}; expected finite numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_is_drawn_as_often_as_it_is_likely() {
        let logits = [2.0f32.ln(), 5.0f32.ln(), 1.0f32.ln()]; // of 8
        for (uniform, expected, p) in [
            (0.0, 0, 0.25),
            (0.249, 0, 0.25),
            (0.251, 1, 0.625),
            (0.874, 1, 0.625),
            (0.876, 2, 0.125),
            (0.999_999_94, 2, 0.125),
        ] {
            let (chosen, log_prob) = categorical(&logits, uniform);
            assert_eq!(chosen, expected, "{uniform}");
            assert!((log_prob.exp() - p).abs() < 1e-6);
        }
    }

    #[test]
    fn an_impossible_category_is_never_drawn() {
        for uniform in [0.0, 0.5, 0.999_999_94] {
            let (chosen, log_prob) =
                categorical(&[f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY], uniform);
            assert_eq!((chosen, log_prob), (1, 0.0));
        }
    }
}
