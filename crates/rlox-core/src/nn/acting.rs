//! What a policy does for a batch of observations, with random numbers that the caller has drawn.

use super::{Hidden, PackedMlp};
use crate::error::{RloxError, check_len};
use crate::math;
use crate::memory::reserve;

/// An actor with the weights that it had when it was made, and what its outputs stand for.
#[derive(Debug)]
pub struct ActionSampler {
    actor: PackedMlp,
    head: Head,
    hidden: Hidden,
    outputs: Vec<f32>,
    waiting: Vec<f32>,
}

/// The distribution of actions.
#[derive(Debug)]
enum Head {
    /// Independent choices, by the number of their possibilities; outputs are logits.
    Choices(Vec<usize>),
    /// Independent normals with these deviations; outputs are means.
    Gaussian(Vec<f32>),
    /// Independent bits; outputs are the logits of 1.
    Bits,
}

/// Where actions are put.
#[derive(Debug)]
pub enum ActionsOut<'a> {
    /// `[n, choices]`
    Choices(&'a mut [i64]),
    /// `[n, act_dim]`; of bits, `[n, bits]`, 0 or 1
    Continuous(&'a mut [f32]),
}

impl ActionSampler {
    /// Independent choices; `nvec` holds the number of possibilities of each.
    ///
    /// # Errors
    /// If they are not as many in all as the actor has outputs, one of them is 0, or there is no memory.
    pub fn choosing(actor: PackedMlp, nvec: &[usize]) -> Result<Self, RloxError> {
        check_choices(nvec, actor.mlp().n_outputs())?;
        Self::of(actor, Head::Choices(nvec.to_vec()))
    }

    /// Independent normals with the deviations exp(`log_std`).
    ///
    /// # Errors
    /// If they are not as many as the actor has outputs, are not from -87 to 87, or there is no memory.
    pub fn gaussian(actor: PackedMlp, log_std: &[f32]) -> Result<Self, RloxError> {
        check_len("log_std", log_std.len(), actor.mlp().n_outputs())?;
        check_log_std(log_std)?;
        Self::of(
            actor,
            Head::Gaussian(log_std.iter().map(|x| x.exp()).collect()),
        )
    }

    /// Independent bits, one for each of the actor's outputs.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn bits(actor: PackedMlp) -> Result<Self, RloxError> {
        Self::of(actor, Head::Bits)
    }

    fn of(actor: PackedMlp, head: Head) -> Result<Self, RloxError> {
        Ok(Self {
            hidden: Hidden::of(&[actor.mlp()])?,
            actor,
            head,
            outputs: Vec::new(),
            waiting: Vec::new(),
        })
    }

    /// Numbers of an observation.
    pub fn obs_dim(&self) -> usize {
        self.actor.mlp().n_inputs()
    }

    /// Random numbers that an action takes, one for each of the actor's outputs.
    pub fn n_noise(&self) -> usize {
        self.actor.mlp().n_outputs()
    }

    /// Choices of an action; None where it consists of floats.
    pub fn n_choices(&self) -> Option<usize> {
        match &self.head {
            Head::Choices(nvec) => Some(nvec.len()),
            Head::Gaussian(_) | Head::Bits => None,
        }
    }

    /// Draws an action for each row of `obs`, `[n, obs_dim]`, with `noise`, `[n, n_noise]`: standard
    /// normals, or for choices exponential numbers, or for bits uniform ones from 0 to 1. The possibility
    /// with the least noise / exp(logit) is taken, which draws from the softmax of the logits; a bit is 1
    /// where its noise is below its probability.
    ///
    /// # Errors
    /// If lengths do not go together, `to` is of the other kind, the network gives numbers that are not
    /// finite, noise for choices is not positive, or there is no memory.
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
        match (&self.head, to) {
            (Head::Choices(nvec), ActionsOut::Choices(to)) => {
                check_len("actions", to.len(), n * nvec.len())?;
                if let Some(found) = noise.iter().find(|x| !(x.is_normal() && **x > 0.0)) {
                    let problem = format!("holds {found}, expected positive numbers");
                    return Err(RloxError::argument("noise", problem));
                }
                self.waiting.clear();
                reserve(&mut self.waiting, noise.len())?;
                self.waiting.extend_from_slice(noise);
                math::ln(&mut self.waiting);
                let scores = self.outputs.iter_mut().zip(&self.waiting);
                scores.for_each(|(logit, waiting)| *logit -= waiting);
                let mut rest = &self.outputs[..];
                for (to, &n) in to.iter_mut().zip(nvec.iter().cycle()) {
                    let (scores, more) = rest.split_at(n);
                    *to = largest(scores);
                    rest = more;
                }
            }
            (Head::Gaussian(std), ActionsOut::Continuous(to)) => {
                check_len("actions", to.len(), noise.len())?;
                let rows =
                    (self.outputs.chunks_exact(std.len())).zip(noise.chunks_exact(std.len()));
                for (to, (means, noise)) in to.chunks_exact_mut(std.len()).zip(rows) {
                    for (((to, mean), std), noise) in to.iter_mut().zip(means).zip(std).zip(noise) {
                        *to = mean + std * noise;
                    }
                }
            }
            (Head::Bits, ActionsOut::Continuous(to)) => {
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

/// Checks that choices of so many possibilities take all of a network's outputs as logits.
pub(super) fn check_choices(nvec: &[usize], n_outputs: usize) -> Result<(), RloxError> {
    if nvec.contains(&0) {
        let problem = "holds 0, expected at least 1 possibility of each choice";
        return Err(RloxError::argument("nvec", problem));
    }
    let logits = nvec.iter().fold(0, |sum: usize, &n| sum.saturating_add(n));
    check_len("logits of nvec", logits, n_outputs)
}

/// Checks that deviations exp(`log_std`), and their inverses, are positive and finite.
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

/// The index of the first largest number.
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
                // An exponential number at the rate exp(logit).
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
