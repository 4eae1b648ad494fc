//! P24: the two observations of a transition stored both, or the next one as that of a later row.

use std::fmt::Write;

use rlox_core::buffer::BufferWiring;
use rlox_core::buffer::observations::{ByWidth, Observations, Twice, WIDE};
use rlox_core::wiring::Shipped;

use super::rows_for;
use super::sequences::narrow;
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Arm, Pair, Size, Twin, Workload, arm, number};

pub(super) struct ObservationsPair;

/// Environments in turn, of which each goes on from where it was, or starts anew; one transition at
/// a time, a step of all, or some steps of one; every row after each push, and a gathered sample.
pub(super) fn script<R: Observations<f32>, W: BufferWiring>(case: &mut Draw<'_>) -> String {
    let mut written = String::new();
    let capacity = 1 + case.below(12);
    let obs_dim = if case.once_in(4) {
        2
    } else {
        WIDE / size_of::<f32>()
    };
    let Ok(mut rows) = R::new::<W>(capacity, obs_dim) else {
        return written;
    };
    // The first number of an observation tells which it is, the last one whether it is a first one.
    let made = |number: f32, last: f32| {
        let mut obs = vec![number; obs_dim];
        obs[obs_dim - 1] = last;
        obs
    };
    let (mut pushed, mut counter) = (0, 0.0);
    // Of every environment the observation that it is at. An episode starts where the one before
    // ended, but for the sign of a zero.
    let mut at = vec![made(0.0, -0.0); 1 + case.below(4)];
    let mut transition = |at: &mut Vec<f32>, ended: bool| {
        let obs = at.clone();
        counter += 1.0;
        let next_obs = made(counter, 0.0);
        *at = if ended {
            made(counter, -0.0)
        } else {
            next_obs.clone()
        };
        (obs, next_obs)
    };
    for _ in 0..1 + case.below(20) {
        let mut batch = (Vec::new(), Vec::new());
        let of_one = case.once_in(4);
        for _ in 0..if of_one { case.below(5) } else { 1 } {
            let envs = if of_one { 1 } else { at.len() };
            for env in &mut at[..envs] {
                let (obs, next_obs) = transition(env, case.once_in(5));
                batch.0.extend(obs);
                batch.1.extend(next_obs);
            }
        }
        let n = batch.0.len() / obs_dim;
        if case.once_in(3) {
            for (obs, next_obs) in batch.0.chunks(obs_dim).zip(batch.1.chunks(obs_dim)) {
                rows.push(pushed % capacity, obs, next_obs);
                pushed += 1;
            }
        } else {
            rows.push_batch(pushed % capacity, &batch.0, &batch.1);
            pushed += n;
        }
        let stored: Vec<usize> = (0..pushed.min(capacity)).collect();
        for &row in &stored {
            let [obs, next_obs] = [rows.obs(row), rows.next_obs(row)].map(ends);
            let _ = write!(written, "{obs:?} {next_obs:?} ");
        }
        let (mut obs, mut next_obs) = (
            vec![7.0; stored.len() * obs_dim],
            vec![7.0; stored.len() * obs_dim],
        );
        rows.gather(&stored, &mut obs, &mut next_obs);
        let [obs, next_obs] = [&obs, &next_obs].map(|all| all.chunks(obs_dim).map(ends));
        let gathered: Vec<_> = obs.zip(next_obs).collect();
        let _ = writeln!(written, "{gathered:?}");
    }
    written
}

/// The first and the last number of an observation whose others are as the first.
fn ends(obs: &[f32]) -> [f32; 2] {
    let (last, others) = obs.split_last().unwrap_or((&f32::NAN, &[]));
    let first = others.first().copied().unwrap_or(f32::NAN);
    let alike = others.iter().all(|&number| number == first);
    [if alike { first } else { f32::NAN }, *last]
}

/// Four observations over and over: each transition goes on where the one before ended.
fn pushing<R: Observations<f32> + 'static>(obs_dim: usize) -> Box<dyn Arm> {
    let capacity = rows_for(obs_dim);
    let mut rows = R::new::<Shipped>(capacity, obs_dim).ok();
    let table = narrow(&fixed_numbers(4 * obs_dim, 1));
    let mut pushed = 0;
    arm(move || {
        let rows = rows.as_mut()?;
        let [obs, next_obs] =
            [pushed, pushed + 1].map(|i| &table[i % 4 * obs_dim..(i % 4 + 1) * obs_dim]);
        rows.push(pushed % capacity, obs, next_obs);
        pushed += 1;
        Some(rows.obs((pushed - 1) % capacity)[0])
    })
}

/// 256 rows from all over, of episodes that go on.
fn gathering<R: Observations<f32> + 'static>(obs_dim: usize) -> Box<dyn Arm> {
    let capacity = rows_for(obs_dim);
    let mut rows = R::new::<Shipped>(capacity, obs_dim).ok();
    let table = narrow(&fixed_numbers(5 * obs_dim, 1));
    if let Some(rows) = &mut rows {
        for row in 0..capacity {
            let [obs, next_obs] =
                [row, row + 1].map(|i| &table[i % 5 * obs_dim..(i % 5 + 1) * obs_dim]);
            rows.push(row, obs, next_obs);
        }
    }
    let (mut obs, mut next_obs) = (vec![0.0; 256 * obs_dim], vec![0.0; 256 * obs_dim]);
    let (mut drawn, mut at) = (vec![0; 256], 0);
    arm(move || {
        for row in &mut drawn {
            at = (at + 2_654_435_761) % capacity;
            *row = at;
        }
        rows.as_ref()?.gather(&drawn, &mut obs, &mut next_obs);
        Some((obs[0], next_obs[0]))
    })
}

const SIZES: &[Size<'static>] = &[
    &[("obs_dim", 4)],
    &[("obs_dim", 376)],
    &[("obs_dim", 28_224)],
];

impl Pair for ObservationsPair {
    fn id(&self) -> &'static str {
        "P24"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => script::<Twice<f32>, Shipped>(case),
            Twin::Optimized => script::<ByWidth<f32>, Shipped>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "push",
                sizes: SIZES,
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    Box::new(move |twin| match twin {
                        Twin::Baseline => pushing::<Twice<f32>>(obs_dim),
                        Twin::Optimized => pushing::<ByWidth<f32>>(obs_dim),
                    })
                },
            },
            Workload {
                name: "gather_256",
                sizes: SIZES,
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    Box::new(move |twin| match twin {
                        Twin::Baseline => gathering::<Twice<f32>>(obs_dim),
                        Twin::Optimized => gathering::<ByWidth<f32>>(obs_dim),
                    })
                },
            },
        ]
    }
}
