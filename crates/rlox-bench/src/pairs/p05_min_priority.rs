//! P5: the smallest priority by a scan, or from a tree of minima.

use std::fmt::Write;

use rlox_core::buffer::min_priority::Scan;
use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::{BufferWiring, Replay};
use rlox_core::wiring;
use rlox_core::wiring::{Shipped, shipped};

use super::buffers::{ACT_DIM, Drawn, OBS_DIM, Wide, digest, sample};
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Arm, Pair, Size, Twin, Workload, arm, number};

pub(super) struct MinPriorities;

wiring!(BeforeP5 = shipped but { type MinPriority = Scan; });

type Buffer<W> = PriorityBuffer<f32, W>;

/// Pushes, priorities (zero among them) and samples in any order, over the end of the ring.
fn script<W: BufferWiring>(case: &mut Draw<'_>) -> String {
    let mut written = String::new();
    let capacity = 1 + case.below(9);
    let (alpha, beta) = (case.of(&[0.6, 1.0, 0.0]), case.unit());
    let Ok(mut buffer) = Buffer::<W>::new(capacity, OBS_DIM, ACT_DIM, alpha, beta, case.seed())
    else {
        return written;
    };
    for _ in 0..2 + case.below(24) {
        let len = buffer.storage().len();
        match case.below(3) {
            0 => drop(buffer.append(&Drawn::draw(case).view(false).as_batch())),
            1 if len > 0 => {
                let n = 1 + case.below(4);
                let indices: Vec<i64> = (0..n).map(|_| case.below(len) as i64).collect();
                let priorities: Vec<f64> = (0..n)
                    .map(|_| case.of(&[0.0, 0.25, 1.0, 3.0, 7.5, 1e-9]))
                    .collect();
                let updated = buffer.update_priorities(&indices, &priorities);
                let _ = writeln!(written, "{updated:?}");
            }
            _ => sample(&mut buffer, case, &mut written),
        }
    }
    sample(&mut buffer, case, &mut written);
    written
}

/// A full buffer of `n` transitions with priorities all over (0, 1].
fn filled<W: BufferWiring>(n: usize) -> Option<Buffer<W>> {
    let mut buffer = Buffer::<W>::new(n, 4, 1, 0.6, 0.4, 0).ok()?;
    let transition = Wide::new(4, 1);
    for row in 0..n {
        buffer
            .append(&transition.view(row as f32).as_batch())
            .ok()?;
    }
    let indices: Vec<i64> = (0..n as i64).collect();
    buffer.update_priorities(&indices, &priorities(n)).ok()?;
    Some(buffer)
}

fn priorities(n: usize) -> Vec<f64> {
    fixed_numbers(n, 5).iter().map(|x| 1e-3 + x.abs()).collect()
}

fn sampling<W: BufferWiring>(n: usize) -> Box<dyn Arm> {
    let mut buffer = filled::<W>(n);
    arm(move || {
        let batch = buffer.as_mut()?.sample(256, None).ok()?;
        Some(digest(&batch))
    })
}

/// New priorities for 256 rows all over the buffer, other ones at every call.
fn setting<W: BufferWiring>(n: usize) -> Box<dyn Arm> {
    let mut buffer = filled::<W>(n);
    let indices: Vec<i64> = (0..256).map(|i| (i * 2_654_435_761 % n) as i64).collect();
    let priorities = priorities(1_024);
    let mut call = 0;
    arm(move || {
        call = (call + 1) % 4;
        let priorities = &priorities[call * 256..(call + 1) * 256];
        buffer
            .as_mut()?
            .update_priorities(&indices, priorities)
            .ok()
    })
}

const SIZES: &[Size<'static>] = &[
    &[("n", 1_000)],
    &[("n", 10_000)],
    &[("n", 100_000)],
    &[("n", 1_000_000)],
];

impl Pair for MinPriorities {
    fn id(&self) -> &'static str {
        "P5"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => script::<BeforeP5>(case),
            Twin::Optimized => script::<Shipped>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "sample_256",
                sizes: SIZES,
                prepare: |size| {
                    let n = number(size, "n");
                    Box::new(move |twin| match twin {
                        Twin::Baseline => sampling::<BeforeP5>(n),
                        Twin::Optimized => sampling::<Shipped>(n),
                    })
                },
            },
            Workload {
                name: "set_256",
                sizes: SIZES,
                prepare: |size| {
                    let n = number(size, "n");
                    Box::new(move |twin| match twin {
                        Twin::Baseline => setting::<BeforeP5>(n),
                        Twin::Optimized => setting::<Shipped>(n),
                    })
                },
            },
        ]
    }
}
