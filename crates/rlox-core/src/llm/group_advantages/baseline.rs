//! Group after group, reward after reward; groups in parallel as `S` says.

use rayon::prelude::*;

use crate::llm::ops::Schedule;
use crate::{Real, pool};

/// Writes each reward's advantage over its group of `group_size`; whether every group's variance is
/// finite, as it is not where a reward is not.
pub fn normalise<S: Schedule, T: Real>(
    rewards: &[T],
    group_size: usize,
    epsilon: f64,
    advantages: &mut [T],
) -> bool {
    let of_group = |(rewards, advantages): (&[T], &mut [T])| {
        normalise_group(rewards, epsilon, advantages);
    };
    if S::group_advantages(rewards.len() / group_size, rewards.len()) && pool::threads() > 1 {
        rewards
            .par_chunks(group_size)
            .zip(advantages.par_chunks_mut(group_size))
            .for_each(of_group);
    } else {
        rewards
            .chunks(group_size)
            .zip(advantages.chunks_mut(group_size))
            .for_each(of_group);
    }
    // One reward that is not finite makes its whole group NaN.
    !advantages.iter().step_by(group_size).any(|a| a.is_nan())
}

fn normalise_group<T: Real>(rewards: &[T], epsilon: f64, advantages: &mut [T]) {
    let n = rewards.len() as f64;
    let mean = rewards.iter().map(|&r| r.into()).sum::<f64>() / n;
    let centred = |reward: T| reward.into() - mean;
    let variance = rewards.iter().map(|&r| centred(r).powi(2)).sum::<f64>() / n;
    // An infinite variance would pass for advantages of zero.
    let scale = if variance.is_finite() {
        variance.sqrt() + epsilon
    } else {
        f64::NAN
    };
    for (advantage, &reward) in advantages.iter_mut().zip(rewards) {
        *advantage = T::from_f64(centred(reward) / scale);
    }
}
