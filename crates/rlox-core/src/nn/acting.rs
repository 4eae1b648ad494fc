//! Draws a policy's actions for a batch of observations, for environments that run in Python.
//!
//! The caller draws the random numbers, so that they come from the same generator as the rest of the
//! trainer's.

use super::{Hidden, PackedMlp};
use crate::error::{RloxError, check_len};
use crate::math;
use crate::memory::reserve;

/// A copy of an actor's weights, and the distribution that its outputs parametrise.
#[derive(Debug)]
pub struct ActionSampler {
    actor: PackedMlp,
    distribution: Distribution,
    hidden: Hidden,
    /// Outputs of the actor, `[n, outputs]`; kept between calls for its memory.
    outputs: Vec<f32>,
    /// Logarithms of the noise of choices, `[n, outputs]`; likewise.
    log_noise: Vec<f32>,
}

/// The distribution of actions.
#[derive(Debug)]
enum Distribution {
    /// Independent categorical distributions with these numbers of categories. The actor's outputs
    /// are their logits, side by side.
    Choices(Vec<usize>),
    /// Independent normal distributions with these standard deviations. The outputs are their means.
    Gaussian(Vec<f32>),
    /// Independent Bernoulli distributions. The outputs are the logits of 1.
    Bits,
}

/// Where [`ActionSampler::draw`] writes the actions.
#[derive(Debug)]
pub enum ActionsOut<'a> {
    /// Of [`ActionSampler::choosing`]: categories, `[n, choices]`.
    Choices(&'a mut [i64]),
    /// Of [`ActionSampler::gaussian`] `[n, act_dim]`; of [`ActionSampler::bits`] `[n, bits]`, 0 or 1.
    Continuous(&'a mut [f32]),
}

impl ActionSampler {
    /// For independent categorical actions. `nvec` has the number of categories of each, as in
    /// Gymnasium's `MultiDiscrete`.
    ///
    /// # Errors
    /// If `nvec` does not sum to the number of the actor's outputs, one of its numbers is 0, or there
    /// is no memory.
    pub fn choosing(actor: PackedMlp, nvec: &[usize]) -> Result<Self, RloxError> {
        check_choices(nvec, actor.mlp().n_outputs())?;
        Self::of(actor, Distribution::Choices(nvec.to_vec()))
    }

    /// For independent normal actions with the standard deviations exp(`log_std`), `[act_dim]`.
    ///
    /// # Errors
    /// If `log_std` has not a number for each of the actor's outputs, one of them is not from -87 to
    /// 87, or there is no memory.
    pub fn gaussian(actor: PackedMlp, log_std: &[f32]) -> Result<Self, RloxError> {
        check_len("log_std", log_std.len(), actor.mlp().n_outputs())?;
        check_log_std(log_std)?;
        Self::of(
            actor,
            Distribution::Gaussian(log_std.iter().map(|x| x.exp()).collect()),
        )
    }

    /// For actions of independent bits, one for each of the actor's outputs.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn bits(actor: PackedMlp) -> Result<Self, RloxError> {
        Self::of(actor, Distribution::Bits)
    }

    fn of(actor: PackedMlp, distribution: Distribution) -> Result<Self, RloxError> {
        Ok(Self {
            hidden: Hidden::of(&[actor.mlp()])?,
            actor,
            distribution,
            outputs: Vec::new(),
            log_noise: Vec::new(),
        })
    }

    /// Elements of an observation.
    pub fn obs_dim(&self) -> usize {
        self.actor.mlp().n_inputs()
    }

    /// How many random numbers an action takes: one for each of the actor's outputs.
    pub fn n_noise(&self) -> usize {
        self.actor.mlp().n_outputs()
    }

    /// How many choices an action has; None for actions of floats.
    pub fn n_choices(&self) -> Option<usize> {
        match &self.distribution {
            Distribution::Choices(nvec) => Some(nvec.len()),
            Distribution::Gaussian(_) | Distribution::Bits => None,
        }
    }

    /// Draws an action for each row of `obs`, `[n, obs_dim]`, with `noise`, `[n, n_noise]`.
    ///
    /// - Normal actions take standard normal noise: mean + std * noise.
    /// - Choices take exponential noise, and the category with the least noise / exp(logit) is chosen.
    ///   This draws from the softmax of the logits: of independent exponential variables, each is the
    ///   least with a probability in proportion to its rate, here exp(logit).
    /// - Bits take noise uniform in [0, 1), and a bit is 1 where its noise is below its probability.
    ///
    /// # Errors
    /// If the lengths do not agree, `to` is not of the actions' kind, an output of the network is not
    /// finite, noise of choices is not positive, or there is no memory.
    pub fn draw(
        &mut self,
        obs: &[f32],
        noise: &[f32],
        to: ActionsOut<'_>,
    ) -> Result<(), RloxError> {
        let n = obs.len() / self.obs_dim();
        check_len("obs", obs.len(), n * self.obs_dim())?;
        check_len("noise", noise.len(), n * self.n_noise())?;
        self.outputs.clear();
        reserve(&mut self.outputs, noise.len())?;
        self.outputs.resize(noise.len(), 0.0);
        self.actor.forward(obs, &mut self.hidden, &mut self.outputs);
        if let Some(found) = self.outputs.iter().find(|x| !x.is_finite()) {
            let problem = format!("gives {found}, from which no action can be drawn");
            return Err(RloxError::argument("actor", problem));
        }
        match (&self.distribution, to) {
            (Distribution::Choices(nvec), ActionsOut::Choices(to)) => {
                check_len("actions", to.len(), n * nvec.len())?;
                if let Some(found) = noise.iter().find(|x| !(x.is_normal() && **x > 0.0)) {
                    let problem = format!("holds {found}, expected positive numbers");
                    return Err(RloxError::argument("noise", problem));
                }
                // The least noise / exp(logit) is the largest logit - ln(noise).
                self.log_noise.clear();
                reserve(&mut self.log_noise, noise.len())?;
                self.log_noise.extend_from_slice(noise);
                math::ln(&mut self.log_noise);
                let scores = self.outputs.iter_mut().zip(&self.log_noise);
                scores.for_each(|(logit, log_noise)| *logit -= log_noise);
                let mut rest = &self.outputs[..];
                for (to, &n) in to.iter_mut().zip(nvec.iter().cycle()) {
                    let (scores, more) = rest.split_at(n);
                    *to = largest(scores);
                    rest = more;
                }
            }
            (Distribution::Gaussian(std), ActionsOut::Continuous(to)) => {
                check_len("actions", to.len(), noise.len())?;
                let rows =
                    (self.outputs.chunks_exact(std.len())).zip(noise.chunks_exact(std.len()));
                for (to, (means, noise)) in to.chunks_exact_mut(std.len()).zip(rows) {
                    for (((to, mean), std), noise) in to.iter_mut().zip(means).zip(std).zip(noise) {
                        *to = mean + std * noise;
                    }
                }
            }
            (Distribution::Bits, ActionsOut::Continuous(to)) => {
                check_len("actions", to.len(), noise.len())?;
                for ((to, logit), noise) in to.iter_mut().zip(&self.outputs).zip(noise) {
                    let probability = 1.0 / (1.0 + (-logit).exp());
                    *to = f32::from(u8::from(*noise < probability));
                }
            }
            _ => {
                let problem = "are of another kind than the policy draws";
                return Err(RloxError::argument("actions", problem));
            }
        }
        Ok(())
    }
}

/// Checks that `nvec`, the numbers of categories, are positive and sum to the number of the network's
/// outputs.
pub(crate) fn check_choices(nvec: &[usize], n_outputs: usize) -> Result<(), RloxError> {
    if nvec.contains(&0) {
        let problem = "holds 0, expected at least 1 possibility of each choice";
        return Err(RloxError::argument("nvec", problem));
    }
    let logits = nvec.iter().fold(0, |sum: usize, &n| sum.saturating_add(n));
    check_len("logits of nvec", logits, n_outputs)
}

/// Checks that the standard deviations exp(`log_std`) and their inverses are positive and finite.
pub(crate) fn check_log_std(log_std: &[f32]) -> Result<(), RloxError> {
    let positive = |x: f32| x > 0.0 && x.is_finite();
    let too_far = |x: &&f32| !(positive(x.exp()) && positive((-*x).exp()));
    match log_std.iter().find(too_far) {
        None => Ok(()),
        Some(found) => {
            let problem = format!("holds {found}, expected numbers from -87 to 87");
            Err(RloxError::argument("log_std", problem))
        }
    }
}

/// The index of the largest number, the first one of several.
fn largest(scores: &[f32]) -> i64 {
    let mut best = 0;
    for (i, &score) in scores.iter().enumerate() {
        if score > scores[best] {
            best = i;
        }
    }
    best as i64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nn::tests::numbers;
    use crate::nn::{Activation, Mlp};

    fn actor(n_out: usize) -> PackedMlp {
        let mlp = Mlp::new(&[3, 5, n_out], Activation::Tanh).unwrap();
        let params = numbers(mlp.n_params(), 1.0, 1);
        PackedMlp::new(mlp, &params).unwrap()
    }

    fn outputs(actor: &PackedMlp, obs: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; obs.len() / 3 * actor.mlp().n_outputs()];
        actor.forward(obs, &mut Hidden::default(), &mut out);
        out
    }

    #[test]
    fn the_first_to_come_is_chosen() {
        let (obs, noise) = (numbers(33, 1.0, 2), numbers(11 * 6, 1.0, 3));
        let noise: Vec<f32> = noise.iter().map(|x| x.abs() + 1e-3).collect();
        let actor = actor(6);
        let logits = outputs(&actor, &obs);
        let mut acting = ActionSampler::choosing(actor, &[2, 1, 3]).unwrap();
        let mut chosen = vec![-1; 33];
        acting
            .draw(&obs, &noise, ActionsOut::Choices(&mut chosen))
            .unwrap();
        for (row, chosen) in chosen.chunks_exact(3).enumerate() {
            for (choice, (first, n)) in [(0, 2), (2, 1), (3, 3)].into_iter().enumerate() {
                // An exponential variable with the rate exp(logit).
                let comes = |i: &usize| noise[row * 6 + i] * (-logits[row * 6 + i]).exp();
                let soonest = (first..first + n).min_by(|a, b| comes(a).total_cmp(&comes(b)));
                assert_eq!(chosen[choice], (soonest.unwrap() - first) as i64);
            }
        }
    }

    #[test]
    fn a_normal_lies_around_its_mean() {
        let (obs, noise) = (numbers(6, 1.0, 2), [0.0, 0.0, 1.0, -2.0]);
        let actor = actor(2);
        let means = outputs(&actor, &obs);
        let mut acting = ActionSampler::gaussian(actor, &[0.0, 2.0f32.ln()]).unwrap();
        let mut actions = [0.0; 4];
        let drawn = acting.draw(&obs, &noise, ActionsOut::Continuous(&mut actions));
        assert_eq!(drawn, Ok(()));
        let expected = [means[0], means[1], means[2] + 1.0, means[3] - 2.0 * 2.0];
        for (found, expected) in actions.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn a_bit_is_one_where_its_noise_is_below_its_probability() {
        let obs = numbers(33, 1.0, 2);
        let actor = actor(3);
        let logits = outputs(&actor, &obs);
        let noise: Vec<f32> = numbers(33, 0.5, 3).iter().map(|x| x + 0.5).collect();
        let mut acting = ActionSampler::bits(actor).unwrap();
        let mut bits = [-1.0; 33];
        let drawn = acting.draw(&obs, &noise, ActionsOut::Continuous(&mut bits));
        assert_eq!(drawn, Ok(()));
        for ((bit, logit), noise) in bits.iter().zip(&logits).zip(&noise) {
            let below = *noise < 1.0 / (1.0 + (-logit).exp());
            assert_eq!(*bit, if below { 1.0 } else { 0.0 });
        }
        assert!(bits.contains(&0.0) && bits.contains(&1.0));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        assert!(ActionSampler::choosing(actor(3), &[2]).is_err());
        assert!(ActionSampler::choosing(actor(3), &[3, 0]).is_err());
        assert!(ActionSampler::gaussian(actor(3), &[0.0]).is_err());
        let mut acting = ActionSampler::choosing(actor(3), &[3]).unwrap();
        let mut to = [0; 1];
        for (obs, noise) in [(2, 3), (3, 2), (6, 6)] {
            let (obs, noise) = (vec![0.0; obs], vec![1.0; noise]);
            assert!(
                acting
                    .draw(&obs, &noise, ActionsOut::Choices(&mut to))
                    .is_err()
            );
        }
        let mut floats = [0.0; 3];
        let floats = ActionsOut::Continuous(&mut floats);
        assert!(acting.draw(&[0.0; 3], &[1.0; 3], floats).is_err());
    }
}
