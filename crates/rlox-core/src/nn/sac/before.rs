//! What comes before an update: its arguments are checked, and all memory that it needs is allocated,
//! so that nothing can fail once parameters have begun to change.

use super::critic::QFunction;
use super::{Batch, Learners, Sac, Settings};
use crate::RloxError;
use crate::error::check_len;
use crate::memory::reserve;
use crate::nn::adam::Moments;

impl Sac {
    /// Allocates all memory that an update of `rows` rows needs.
    pub(super) fn reserve(&mut self, rows: usize) -> Result<(), RloxError> {
        let [one, other] = &mut self.critics;
        one.reserve(rows)?;
        other.reserve(rows)?;
        for half in &mut self.halves {
            half.reserve(&self.actor, [one.mlp(), other.mlp()], rows.div_ceil(2))?;
        }
        let width = one.mlp().n_inputs();
        for inputs in [&mut self.x, &mut self.now_x, &mut self.next_x] {
            reserve(inputs, rows.saturating_mul(width))?;
        }
        reserve(&mut self.y, rows)?;
        reserve(&mut self.td_errors, rows)
    }

    pub(super) fn check(
        &self,
        learners: &Learners<'_>,
        batch: &Batch<'_>,
        settings: &Settings,
    ) -> Result<(), RloxError> {
        let mut adams = [settings.actor, settings.critic]
            .into_iter()
            .chain(settings.alpha);
        if adams.any(|(_, step)| step == 0) {
            return Err(RloxError::argument(
                "adams",
                "have a step 0, expected numbers of steps from 1 on",
            ));
        }
        let n = batch.reward.len();
        if n == 0 {
            return Err(RloxError::argument("reward", "is empty"));
        }
        let (obs_dim, act_dim) = (self.obs_dim(), self.act_dim());
        check_len("obs", batch.obs.len(), n * obs_dim)?;
        check_len("next_obs", batch.next_obs.len(), n * obs_dim)?;
        check_len("action", batch.action.len(), n * act_dim)?;
        check_len("terminated", batch.terminated.len(), n)?;
        check_len("weights", batch.weights.map_or(n, <[f32]>::len), n)?;
        check_len("noise", batch.noise.len(), n * act_dim)?;
        check_len("next_noise", batch.next_noise.len(), n * act_dim)?;
        check_moments("actor", &learners.actor, self.actor.n_params())?;
        check_moments("log_alpha", &learners.log_alpha, 1)?;
        let n_params = self.critics.iter().map(QFunction::n_params).sum();
        check_moments("critics", &learners.critics, n_params)?;
        check_len("targets", learners.targets.len(), n_params)?;
        Ok(())
    }
}

fn check_moments(argument: &'static str, moments: &Moments<'_>, n: usize) -> Result<(), RloxError> {
    check_len(argument, moments.params.len(), n)?;
    check_len(argument, moments.exp_avg.len(), n)?;
    check_len(argument, moments.exp_avg_sq.len(), n)
}
