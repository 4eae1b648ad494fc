//! Steps of small networks in Burn, in Candle and in our own `rlox_core::nn`, from the same weights;
//! of a single layer also in faer.
//!
//! Each backend's numbers are compared with our own before it is timed; one that differs is named
//! and left out. With `RLOX_NN_ANSWERS=FOLDER` they are written there instead, as
//! `<step>_<backend>.f32`, little-endian, and all are timed: `rlox-opt peers backends`, which runs
//! this with torch beside it, holds them to plain NumPy. Set `RAYON_NUM_THREADS=1` to hold all to
//! one thread.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark stops where something is amiss"
)]

mod by_burn;
mod by_candle;
mod by_faer;
mod cases;
mod native;

use std::path::Path;
use std::time::{Duration, Instant};

use cases::{Arm, Step};
use criterion::Criterion;

/// Makes an arm at the start of a step. None if the backend does not have the step.
type Make = fn(Step) -> Option<Box<dyn Arm>>;

const BACKENDS: [(&str, Make); 4] = [
    ("native", |step| Some(native::arm(step))),
    ("burn", |step| Some(by_burn::arm(step))),
    ("candle", |step| Some(by_candle::arm(step))),
    ("faer", by_faer::arm),
];

const RTOL: f32 = 1e-4;
const ATOL: f32 = 1e-5;
/// Steps from one start. A quick backend takes many more of them than a slow one, and after a
/// thousand on the same batch the moments of idle weights are subnormal: other numbers for each, and
/// slow ones for those that do not flush them.
const STEPS: u64 = 500;

/// What one step from the start leaves.
fn answer(mut arm: Box<dyn Arm>) -> Vec<f32> {
    arm.step();
    arm.answer()
}

/// How many numbers are apart; all of them if there are more or fewer.
fn apart(found: &[f32], expected: &[f32]) -> usize {
    if found.len() != expected.len() {
        return expected.len().max(found.len());
    }
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= ATOL + RTOL * b.abs();
    found
        .iter()
        .zip(expected)
        .filter(|&pair| !near(pair))
        .count()
}

fn write(folder: &str, name: &str, numbers: &[f32]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(Path::new(folder).join(name), bytes).expect("RLOX_NN_ANSWERS: a folder");
}

/// How long `left` steps take, begun anew every [`STEPS`].
fn timed(make: impl Fn() -> Box<dyn Arm>, mut left: u64) -> Duration {
    let mut total = Duration::ZERO;
    while left > 0 {
        let steps = left.min(STEPS);
        let mut arm = make();
        arm.step(); // makes what it keeps
        let start = Instant::now();
        for _ in 0..steps {
            arm.step();
        }
        total += start.elapsed();
        left -= steps;
    }
    total
}

fn main() {
    let answers = std::env::var("RLOX_NN_ANSWERS").ok();
    let mut criterion = Criterion::default().configure_from_args();
    for step in Step::ALL {
        let expected = answer(native::arm(step));
        let mut group = criterion.benchmark_group(step.name());
        for (backend, make) in BACKENDS {
            let Some(arm) = make(step) else { continue };
            let found = answer(arm);
            let (name, n, wrong) = (step.name(), expected.len(), apart(&found, &expected));
            if let Some(folder) = &answers {
                write(folder, &format!("{name}_{backend}.f32"), &found);
            } else if wrong > 0 {
                eprintln!("{backend} is left out of {name}: {wrong} of {n} numbers differ");
                continue;
            }
            let begin = || make(step).expect("it has the step, as was seen");
            group.bench_function(backend, |b| b.iter_custom(|n| timed(begin, n)));
        }
        group.finish();
    }
    criterion.final_summary();
}
