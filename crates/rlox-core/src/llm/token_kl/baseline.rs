//! P16's baseline: token after token in float64, with a call of the exponential for each. Sequences are
//! computed in parallel where the schedule `S` says so.

use rayon::prelude::*;

use crate::llm::ops::Schedule;
use crate::{Real, pool};

/// Writes to `sums`, `[rows]` with at least one row, the sum over each sequence's tokens. The other
/// slices are `[rows, n_tokens]`. Tokens where `mask` is 0 do not count, whatever they hold. A NaN
/// among the others makes its sum NaN, and so does d = infinity, where exp(d) - d is infinity minus
/// infinity.
pub fn k3_sums<S: Schedule, T: Real>(
    log_probs_policy: &[T],
    log_probs_ref: &[T],
    mask: Option<&[u8]>,
    sums: &mut [T],
) {
    let (rows, elements) = (sums.len(), log_probs_policy.len());
    let n_tokens = elements / rows;
    let row_sum = |(row, to): (usize, &mut T)| {
        let row = row * n_tokens..(row + 1) * n_tokens;
        *to = T::from_f64(k3_sum(
            &log_probs_policy[row.clone()],
            &log_probs_ref[row.clone()],
            mask.map(|mask| &mask[row]),
        ));
    };
    if S::token_kl(rows, elements) && pool::threads() > 1 {
        sums.par_iter_mut().enumerate().for_each(row_sum);
    } else {
        sums.iter_mut().enumerate().for_each(row_sum);
    }
}

/// The sum over one sequence's tokens.
pub(super) fn k3_sum<T: Real>(policy: &[T], reference: &[T], mask: Option<&[u8]>) -> f64 {
    let pairs = policy.iter().zip(reference);
    let k3 = |(&policy, &reference): (&T, &T)| {
        let (policy, reference): (f64, f64) = (policy.into(), reference.into());
        let d = reference - policy;
        d.exp() - d - 1.0
    };
    match mask {
        None => pairs.map(k3).sum(),
        Some(mask) => pairs
            .zip(mask)
            .filter(|&(_, &counts)| counts != 0)
            .map(|(pair, _)| k3(pair))
            .sum(),
    }
}
