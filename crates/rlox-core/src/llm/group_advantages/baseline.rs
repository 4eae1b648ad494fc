//! P17's baseline: the mean and then the variance of each group, reward after reward. Groups are
//! computed in parallel where the schedule `S` says so.

use rayon::prelude::*;

use crate::llm::ops::Schedule;
use crate::{Real, pool};

/// Writes each reward's advantage over its group of `group_size` to `advantages`. Returns whether every
/// group's variance is finite; it is not where a reward is not.
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
    // A reward that is not finite makes all of its group NaN, so the first one of each group tells.
    !advantages.iter().step_by(group_size).any(|a| a.is_nan())
}

fn normalise_group<T: Real>(rewards: &[T], epsilon: f64, advantages: &mut [T]) {
    let n = rewards.len() as f64;
    let mean = rewards.iter().map(|&r| r.into()).sum::<f64>() / n;
    let centred = |reward: T| reward.into() - mean;
    let variance = rewards.iter().map(|&r| centred(r).powi(2)).sum::<f64>() / n;
    // An infinite variance would give advantages of 0, and the error would go unnoticed; NaN is
    // noticed.
    let scale = if variance.is_finite() {
        variance.sqrt() + epsilon
    } else {
        f64::NAN
    };
    for (advantage, &reward) in advantages.iter_mut().zip(rewards) {
        *advantage = T::from_f64(centred(reward) / scale);
    }
}
