//! Sequences of steps, as GAE and V-trace take them.

use std::fmt::{Debug, Formatter, Result};

use crate::draw::{Draw, fixed_numbers};

/// `n` steps of `n_envs` environments, in whatever layout.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    pub(super) rewards: Vec<f64>,
    pub(super) values: Vec<f64>,
    pub(super) dones: Vec<f64>,
    /// `[n_envs]`
    pub(super) last_values: Vec<f64>,
}

impl Steps {
    /// Drawn; once in a while an input is not finite, which must not be lost on the way.
    pub(super) fn draw(case: &mut Draw<'_>, n_steps: usize, n_envs: usize) -> Self {
        let total = n_steps * n_envs;
        let rarity = case.of(&[4, 1, u64::MAX]);
        let mut steps = Self {
            rewards: case.numbers(total),
            values: case.numbers(total),
            dones: flags(&case.flags(total, rarity)),
            last_values: case.numbers(n_envs),
        };
        if total > 0 && case.once_in(16) {
            let at = case.below(total);
            steps.values[at] = case.of(&[f64::NAN, f64::INFINITY]);
        }
        steps
    }

    /// For benchmarks: an episode ends once in 200 steps.
    pub(super) fn fixed(n_steps: usize, n_envs: usize) -> Self {
        let total = n_steps * n_envs;
        Self {
            rewards: fixed_numbers(total, 1),
            values: fixed_numbers(total, 2),
            dones: (0..total)
                .map(|i| f64::from(u8::from(i % 200 == 199)))
                .collect(),
            last_values: fixed_numbers(n_envs, 3),
        }
    }
}

fn flags(flags: &[bool]) -> Vec<f64> {
    flags
        .iter()
        .map(|&flag| f64::from(u8::from(flag)))
        .collect()
}

/// A number, written so that a tolerance for f32 is told from one for f64.
pub(super) struct Marked<T>(pub(super) T);

impl<T: Debug> Debug for Marked<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mark = if size_of::<T>() == 4 { "f32" } else { "" };
        write!(f, "{:?}{mark}", self.0)
    }
}

/// Numbers marked.
pub(super) fn marked<T: Copy>(values: &[T]) -> Vec<Marked<T>> {
    values.iter().copied().map(Marked).collect()
}

/// Rounded to `f32`.
pub(super) fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}
