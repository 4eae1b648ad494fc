//! The policy of a fused rollout: an actor and a critic that are multilayer perceptrons, and how
//! actions are sampled from the actor's outputs.

use std::f32::consts::TAU;

use crate::env::spaces::{Actions, Space};
use crate::error::{RloxError, check_len};
use crate::memory::reserved;
use crate::nn::{PackedMlp, check_choices, check_log_std};
use crate::pipeline::rollout::ActionBatch;

/// An actor and a critic, with copies of their weights.
#[derive(Debug, Clone)]
pub struct MlpPolicy {
    pub(super) actor: PackedMlp,
    pub(super) critic: PackedMlp,
    head: Head,
}

/// The distribution that the actor's outputs parametrise.
#[derive(Debug, Clone)]
enum Head {
    /// Independent choices with these numbers of possibilities. The outputs are their logits, side by
    /// side.
    Choices(Vec<usize>),
    /// The outputs are means.
    Gaussian(Gaussian),
    /// Independent bits. The outputs are the logits of 1.
    Bits,
}

/// Independent normals whose standard deviations do not depend on the observation. All vectors are
/// `[act_dim]`.
#[derive(Debug, Clone)]
pub(super) struct Gaussian {
    log_std: Vec<f32>,
    std: Vec<f32>,
    /// 1 / std.
    inverse_std: Vec<f32>,
    /// Bounds of the action space.
    low: Vec<f32>,
    high: Vec<f32>,
}

impl MlpPolicy {
    /// A categorical policy for a discrete `action_space`, for which `log_std` is empty. For a box, a
    /// Gaussian policy with the standard deviations exp(`log_std`), `[act_dim]`.
    ///
    /// # Errors
    /// If the widths of the networks or the length of `log_std` do not fit `obs_dim` and
    /// `action_space`, or a number of `log_std` is not from -87 to 87.
    pub fn new(
        actor: PackedMlp,
        critic: PackedMlp,
        log_std: &[f32],
        obs_dim: usize,
        action_space: &Space,
    ) -> Result<Self, RloxError> {
        let (outputs, deviations, head) = match action_space {
            Space::Discrete(n) => (*n, 0, Head::Choices(vec![*n])),
            Space::Box { low, high } => {
                let gaussian = Gaussian {
                    log_std: log_std.to_vec(),
                    std: log_std.iter().map(|x| x.exp()).collect(),
                    inverse_std: log_std.iter().map(|x| (-x).exp()).collect(),
                    low: low.clone(),
                    high: high.clone(),
                };
                (low.len(), low.len(), Head::Gaussian(gaussian))
            }
        };
        check_len("log_std", log_std.len(), deviations)?;
        check_log_std(log_std)?;
        Self::with(head, outputs, actor, critic, obs_dim)
    }

    /// A policy of independent choices. `nvec` has the number of possibilities of each, as in
    /// Gymnasium's `MultiDiscrete`.
    ///
    /// # Errors
    /// If the widths of the networks do not fit `obs_dim` and `nvec`, or a number of `nvec` is 0.
    pub fn choosing(
        actor: PackedMlp,
        critic: PackedMlp,
        nvec: &[usize],
        obs_dim: usize,
    ) -> Result<Self, RloxError> {
        let outputs = actor.mlp().n_outputs();
        check_choices(nvec, outputs)?;
        let head = Head::Choices(nvec.to_vec());
        Self::with(head, outputs, actor, critic, obs_dim)
    }

    /// A policy of independent bits, one for each of the actor's outputs.
    ///
    /// # Errors
    /// If the widths of the networks do not fit `obs_dim`.
    pub fn bits(actor: PackedMlp, critic: PackedMlp, obs_dim: usize) -> Result<Self, RloxError> {
        let outputs = actor.mlp().n_outputs();
        Self::with(Head::Bits, outputs, actor, critic, obs_dim)
    }

    fn with(
        head: Head,
        outputs: usize,
        actor: PackedMlp,
        critic: PackedMlp,
        obs_dim: usize,
    ) -> Result<Self, RloxError> {
        check_shape("actor", &actor, [obs_dim, outputs])?;
        check_shape("critic", &critic, [obs_dim, 1])?;
        Ok(Self {
            actor,
            critic,
            head,
        })
    }

    /// How many random numbers an action takes.
    pub fn noise_per_action(&self) -> usize {
        match &self.head {
            Head::Choices(nvec) => nvec.len(),
            Head::Gaussian(gaussian) => gaussian.std.len(),
            Head::Bits => self.actor.mlp().n_outputs(),
        }
    }

    /// Whether these are standard normals; otherwise they are uniform in [0, 1).
    pub(super) fn takes_normals(&self) -> bool {
        matches!(self.head, Head::Gaussian(_))
    }

    /// A sampler with room for `n` actions, of which `n_envs` are taken at each step.
    pub(super) fn sampler(&self, n: usize, n_envs: usize) -> Result<Sampler<'_>, RloxError> {
        Ok(match &self.head {
            Head::Choices(nvec) => Sampler::Choices {
                nvec,
                actions: reserved(n.saturating_mul(nvec.len()))?,
            },
            Head::Gaussian(gaussian) => Sampler::Gaussian {
                gaussian,
                actions: reserved(n * gaussian.std.len())?,
                clipped: reserved(n_envs * gaussian.std.len())?,
            },
            Head::Bits => Sampler::Bits {
                n_bits: self.noise_per_action(),
                actions: reserved(n.saturating_mul(self.noise_per_action()))?,
            },
        })
    }
}

/// Samples actions, and keeps all of a rollout.
pub(super) enum Sampler<'a> {
    Choices {
        nvec: &'a [usize],
        actions: Vec<i64>,
    },
    Gaussian {
        gaussian: &'a Gaussian,
        actions: Vec<f32>,
        /// The actions of the present step, clipped to the bounds of the action space.
        clipped: Vec<f32>,
    },
    Bits {
        n_bits: usize,
        actions: Vec<f32>,
    },
}

impl Sampler<'_> {
    /// Samples the next action from the actor's `outputs` and the `noise` of one observation;
    /// returns its log-probability.
    #[inline]
    pub(super) fn act(&mut self, outputs: &[f32], noise: &[f32]) -> Result<f32, RloxError> {
        let log_prob = match self {
            Self::Choices { nvec, actions } => {
                let (mut log_prob, mut rest) = (0.0, outputs);
                for (&n, &noise) in nvec.iter().zip(noise) {
                    let (logits, others) = rest.split_at(n);
                    let (action, of_one) = categorical(logits, noise);
                    actions.push(action as i64);
                    log_prob += of_one;
                    rest = others;
                }
                log_prob
            }
            Self::Gaussian {
                gaussian,
                actions,
                clipped,
            } => gaussian.sample(outputs, noise, actions, clipped),
            Self::Bits { actions, .. } => {
                let mut log_prob = 0.0;
                for (&logit, &noise) in outputs.iter().zip(noise) {
                    let (bit, of_one) = bernoulli(logit, noise);
                    actions.push(f32::from(u8::from(bit)));
                    log_prob += of_one;
                }
                log_prob
            }
        };
        if !log_prob.is_finite() {
            return Err(no_action(outputs, noise));
        }
        Ok(log_prob)
    }

    /// The actions of the present step for `n` environments, clipped to the action space.
    pub(super) fn latest(&self, n: usize) -> Actions<'_> {
        match self {
            Self::Choices { nvec, actions } => {
                Actions::Discrete(&actions[actions.len() - n * nvec.len()..])
            }
            Self::Gaussian { clipped, .. } => Actions::Continuous(clipped),
            Self::Bits { n_bits, actions } => {
                Actions::Continuous(&actions[actions.len() - n * n_bits..])
            }
        }
    }

    /// Ends the present step: its clipped actions are no longer needed.
    pub(super) fn stepped(&mut self) {
        if let Self::Gaussian { clipped, .. } = self {
            clipped.clear();
        }
    }

    /// All actions, not clipped.
    pub(super) fn into_actions(self) -> ActionBatch {
        match self {
            Self::Choices { actions, .. } => ActionBatch::Discrete(actions),
            Self::Gaussian { actions, .. } | Self::Bits { actions, .. } => {
                ActionBatch::Continuous(actions)
            }
        }
    }
}

/// Samples a category by its inverse distribution function: the first one whose cumulative probability
/// exceeds `uniform`. Returns it and its log-probability.
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

/// A bit that is 1 where `uniform` is below its probability, and its log-probability.
#[inline]
fn bernoulli(logit: f32, uniform: f32) -> (bool, f32) {
    let bit = uniform < 1.0 / (1.0 + (-logit).exp());
    // ln(1 / (1 + exp(-x))), where x is the logit of the bit that was drawn; exp does not overflow.
    let x = if bit { logit } else { -logit };
    (bit, x.min(0.0) - (-x.abs()).exp().ln_1p())
}

impl Gaussian {
    /// Appends the action mean + std * noise to `actions`, and clipped to `clipped`. Returns the
    /// log-density of the action before clipping.
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
            let z = (action - mean) * self.inverse_std[i];
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

/// The error for an action whose log-probability is not finite; it names the argument that is to blame.
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
    fn a_bit_is_drawn_as_often_as_it_is_likely() {
        let logit = 3.0f32.ln(); // 1 with probability 3/4
        for (uniform, expected, p) in [(0.0, true, 0.75), (0.749, true, 0.75), (0.751, false, 0.25)]
        {
            let (bit, log_prob) = bernoulli(logit, uniform);
            assert_eq!(bit, expected, "{uniform}");
            assert!((log_prob.exp() - p).abs() < 1e-6);
        }
        assert_eq!(bernoulli(200.0, 0.5), (true, 0.0));
        assert_eq!(bernoulli(-200.0, 0.5), (false, 0.0));
        assert!(bernoulli(f32::NAN, 0.5).1.is_nan());
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
