//! Interleaved timing of a contest within one process: short slices of calls, the arms in a new
//! random order each round, a third arm (the baseline once more) as the A/A beside it.
//!
//! One process is one memory layout: what is read here is one observation. The intervals come from
//! restarts of the process.

use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::pair::{Arm, Contest, Twin, same};

/// What one process read.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Median of ln(baseline time / optimised time) over the rounds.
    pub log_ratio: f64,
    /// The same of the baseline against itself.
    pub log_ratio_aa: f64,
    /// Median seconds of a call of the baseline.
    pub baseline_s: f64,
    /// Median seconds of a call of the optimised twin.
    pub optimized_s: f64,
    /// Rounds timed.
    pub rounds: usize,
}

/// How long a slice lasts at least: long against the clock, short against what disturbs a machine.
const SLICE: Duration = Duration::from_micros(250);
const MIN_ROUNDS: usize = 7;

/// The outcome of an arm that has no memory for what it works on, and so does nothing: its work is `None`.
pub(crate) const NOTHING: &str = "Some(None)";

/// Why twins were not timed.
#[derive(Debug)]
pub enum Refused {
    /// There is no memory for what an arm works on.
    NoMemory,
    /// They differ; the text says where first.
    Differ(String),
}

/// Checks that both twins return the same, within `tolerance`, then times them against each other for
/// about `budget`.
///
/// # Errors
/// If the twins differ, or there is no memory for what an arm works on.
pub fn contest(
    contest: &Contest,
    tolerance: f64,
    budget: Duration,
    seed: u64,
) -> Result<Reading, Refused> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Made in random order, so that no twin always gets the memory that was free first.
    let twins = [Twin::Baseline, Twin::Optimized, Twin::Baseline];
    let mut places = [0, 1, 2];
    places.shuffle(&mut rng);
    let mut made = places.map(|place| {
        // Every arm starts at an address of its own.
        let _spacer = vec![0u8; rng.random_range(1..4_096)];
        (place, contest(twins[place]))
    });
    made.sort_by_key(|(place, _)| *place);
    let mut arms = made.map(|(_, arm)| arm);
    arms.iter_mut().for_each(|arm| arm.call());
    let outcomes = arms.each_ref().map(|arm| arm.outcome());
    if outcomes.iter().any(|outcome| outcome == NOTHING) {
        return Err(Refused::NoMemory);
    }
    same(&outcomes[0], &outcomes[1], tolerance).map_err(Refused::Differ)?;

    let calls = arms
        .each_mut()
        .map(|arm| calls_per_slice(&mut **arm))
        .into_iter()
        .max()
        .unwrap_or(1);
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    let start = Instant::now();
    while start.elapsed() < budget || times[0].len() < MIN_ROUNDS {
        places.shuffle(&mut rng);
        for place in places {
            times[place].push(slice(&mut *arms[place], calls) / calls as f64);
        }
    }
    let [baseline, optimized, again] = &times;
    Ok(Reading {
        log_ratio: median(&log_ratios(baseline, optimized)),
        log_ratio_aa: median(&log_ratios(baseline, again)),
        baseline_s: median(baseline),
        optimized_s: median(optimized),
        rounds: baseline.len(),
    })
}

/// Seconds of `calls` calls.
fn slice(arm: &mut dyn Arm, calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        arm.call();
    }
    start.elapsed().as_secs_f64()
}

/// As many calls as fill a slice; warms the arm up on the way.
fn calls_per_slice(arm: &mut dyn Arm) -> usize {
    let mut calls = 1;
    while slice(arm, calls) < SLICE.as_secs_f64() {
        calls *= 2;
    }
    calls
}

fn log_ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(a, b)| (a / b).ln()).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        0.5 * (sorted[middle - 1] + sorted[middle])
    }
}
