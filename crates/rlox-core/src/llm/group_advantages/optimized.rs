//! P17's optimised form: whole vectors of rewards, and one pass for mean and variance. The pass sums
//! the differences from the group's first reward and their squares:
//!
//! ```text
//! y_i = r_i - r_0     mean(r) - r_0 = mean(y)     var(r) = mean(y²) - mean(y)²
//! ```
//!
//! The subtraction in var(r) amplifies rounding errors by no more than n + 1 for a group of n rewards:
//! if the first reward lies far from the others, the variance is large, too: var(r) >= mean(y)² / n.
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use crate::Real;
use crate::llm::ops::Schedule;
use crate::simd::{Instructions, kernel, total};

/// Rewards in a vector.
const REWARDS: usize = 8;

/// As [`super::baseline::normalise`], on one thread whatever the schedule says.
pub fn normalise<S: Schedule, T: Real>(
    rewards: &[T],
    group_size: usize,
    epsilon: f64,
    advantages: &mut [T],
) -> bool {
    groups(rewards, group_size, epsilon, advantages)
}

kernel! {
    fn groups<T: Real>(
        rewards: &[T], group_size: usize, epsilon: f64, advantages: &mut [T],
    ) -> bool = body;
}

#[inline(always)]
fn body<I: Instructions, T: Real>(
    rewards: &[T],
    group_size: usize,
    epsilon: f64,
    advantages: &mut [T],
) -> bool {
    let share = 1.0 / group_size as f64;
    let mut finite = true;
    for start in (0..rewards.len()).step_by(group_size) {
        let group = &rewards[start..start + group_size];
        let first: f64 = group[0].into();
        let (mut sums, mut squares) = ([0.0; REWARDS], [0.0; REWARDS]);
        let whole = group_size - group_size % REWARDS;
        for vector in (0..whole).step_by(REWARDS) {
            let vector = &group[vector..vector + REWARDS];
            for l in 0..REWARDS {
                let y = vector[l].into() - first;
                sums[l] += y;
                squares[l] = I::mul_add(y, y, squares[l]);
            }
        }
        for l in 0..group_size - whole {
            let y = group[whole + l].into() - first;
            sums[l] += y;
            squares[l] = I::mul_add(y, y, squares[l]);
        }
        let mean = total(sums) * share;
        let variance = total(squares) * share - mean * mean;
        finite &= variance.is_finite();
        let scale = 1.0 / (variance.max(0.0).sqrt() + epsilon);
        let advantages = &mut advantages[start..start + group_size];
        for i in 0..group_size {
            advantages[i] = T::from_f64((group[i].into() - first - mean) * scale);
        }
    }
    finite
}
