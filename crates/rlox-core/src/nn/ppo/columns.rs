//! R24's optimised form of the loss for one categorical: with the numbers of one action side by side over
//! the rows of a minibatch, so that each loop is long. Each number gets the same operations in the same
//! order as in `actor`, so the results are the same to the bit.

use super::Ppo;
use super::actor::{Minibatch, Sums};
use crate::math;

impl Minibatch {
    /// As [`Self::choose`] for one action of each row, `actions`, `[n]`. Meanwhile `per_action` and `probs`
    /// are `[outputs, B]`.
    pub(super) fn choose_by_columns(
        &mut self,
        ppo: &Ppo,
        logits: &[f32],
        actions: &[i64],
        old_log_probs: &[f32],
        batch: &[i64],
        latest: &mut Sums,
    ) -> Option<()> {
        let rows = batch.len();
        let n = logits.len() / rows;
        self.categorical_by_columns(logits, rows, n);
        self.log_ratio.clear();
        let each = batch.iter().enumerate();
        self.log_ratio.extend(each.map(|(row, &i)| {
            let action = actions[i as usize] as usize;
            self.per_action[action * rows + row] - old_log_probs[i as usize]
        }));
        self.surrogate(ppo, latest)?;

        self.entropy.clear();
        self.entropy.resize(rows, -0.0);
        let columns = self.probs.chunks_exact(rows);
        for (p, log_p) in columns.zip(self.per_action.chunks_exact(rows)) {
            for ((sum, p), log_p) in self.entropy.iter_mut().zip(p).zip(log_p) {
                *sum += p * log_p;
            }
        }
        self.entropy.iter_mut().for_each(|sum| *sum = -*sum);
        let total: f64 = self.entropy.iter().map(|&h| f64::from(h)).sum();
        latest.entropy_loss = -(total / rows as f64);

        let c2 = ppo.ent_coef / rows as f32;
        self.grad_out.clear();
        self.grad_out.resize(logits.len(), 0.0);
        let columns = self.probs.chunks_exact(rows);
        for (j, (p, log_p)) in columns
            .zip(self.per_action.chunks_exact_mut(rows))
            .enumerate()
        {
            let each = log_p.iter_mut().zip(p).zip(&self.entropy);
            for (((l, p), h), g) in each.zip(&self.by_log_prob) {
                *l = p * (c2 * (*l + h) - g);
            }
            for (row, by_logit) in self.grad_out.chunks_exact_mut(n).zip(&*log_p) {
                row[j] = *by_logit;
            }
        }
        let rows = self.grad_out.chunks_exact_mut(n);
        for ((row, &i), g) in rows.zip(batch).zip(&self.by_log_prob) {
            row[actions[i as usize] as usize] += g;
        }
        Some(())
    }

    /// Sets `per_action` to the log-softmax of `logits`, `[B, outputs]`, and `probs` to their softmax, both
    /// by columns.
    fn categorical_by_columns(&mut self, logits: &[f32], rows: usize, n: usize) {
        let columns = &mut self.per_action;
        columns.clear();
        columns.resize(logits.len(), 0.0);
        for (j, column) in columns.chunks_exact_mut(rows).enumerate() {
            for (x, row) in column.iter_mut().zip(logits.chunks_exact(n)) {
                *x = row[j];
            }
        }
        let totals = &mut self.totals;
        totals.clear();
        totals.resize(rows, f32::NEG_INFINITY);
        for column in columns.chunks_exact(rows) {
            let each = totals.iter_mut().zip(column);
            each.for_each(|(largest, x)| *largest = largest.max(*x));
        }
        for column in columns.chunks_exact_mut(rows) {
            let each = column.iter_mut().zip(&*totals);
            each.for_each(|(x, largest)| *x -= largest);
        }
        self.probs.clone_from(columns);
        math::exp(&mut self.probs);
        totals.fill(-0.0);
        for column in self.probs.chunks_exact(rows) {
            totals.iter_mut().zip(column).for_each(|(sum, p)| *sum += p);
        }
        for column in self.probs.chunks_exact_mut(rows) {
            let each = column.iter_mut().zip(&*totals);
            each.for_each(|(p, total)| *p /= total);
        }
        math::ln(totals);
        for column in columns.chunks_exact_mut(rows) {
            let each = column.iter_mut().zip(&*totals);
            each.for_each(|(x, total)| *x -= total);
        }
    }
}
