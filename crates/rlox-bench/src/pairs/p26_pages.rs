//! P26: large columns in pages as the system hands them out, or in huge ones.

use std::fmt::Write;

use rlox_core::buffer::pages::{baseline, optimized};
use rlox_core::buffer::{BufferWiring, Replay};
use rlox_core::wiring;
use rlox_core::wiring::shipped;

use super::buffers::{digest, full, kept, rows_for};
use crate::draw::Draw;
use crate::pair::{Arm, Pair, Twin, Workload, arm, number};

pub(super) struct Pages;

wiring!(BeforeP26 = shipped but { const P26: bool = false; });
// Not `Shipped`: other pairs use its buffers as well, and so the compiler inlines less of them.
wiring!(AfterP26 = shipped but { const P26: bool = true; });

/// A new ring of 32 MB, or of 100,000 transitions if these are less, filled once.
fn filling<W: BufferWiring>(obs_dim: usize) -> Box<dyn Arm> {
    let rows = (8_000_000 / obs_dim).min(100_000);
    arm(move || Some(full::<W>(rows, obs_dim)?.storage().len()))
}

/// Samples of 256 of a full ring.
fn sampling<W: BufferWiring + 'static>(obs_dim: usize) -> Box<dyn Arm> {
    let mut ring = full::<W>(rows_for(obs_dim), obs_dim);
    let mut batch = kept(256, obs_dim, 1, false);
    arm(move || {
        let ring = ring.as_mut()?;
        ring.sample_into(None, &mut batch.columns()).ok()?;
        Some(digest(&batch))
    })
}

impl Pair for Pages {
    fn id(&self) -> &'static str {
        "P26"
    }

    /// Columns with and without room for a huge page: all is zero at first, and what is written is read.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let mut written = String::new();
        let len = case.of(&[0, 1, 1_000, 1 << 20, (1 << 20) + 1, 3 << 20]) + case.below(3);
        let zeros = match twin {
            Twin::Baseline => baseline::zeros::<f32>(len),
            Twin::Optimized => optimized::zeros::<f32>(len),
        };
        let Ok(mut column) = zeros else {
            return written;
        };
        let _ = writeln!(written, "{}", column.len());
        for number in 0..if len > 0 { case.below(8) } else { 0 } {
            let anywhere = case.below(len);
            let at = case.of(&[0, anywhere, len - 1]);
            let _ = write!(written, "{} ", column[at]);
            column[at] = 1.0 + number as f32;
        }
        let set = column.iter().enumerate().filter(|&(_, &x)| x != 0.0);
        let _ = write!(written, "{:?}", set.collect::<Vec<_>>());
        written
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "fill",
                sizes: &[
                    &[("obs_dim", 4)],
                    &[("obs_dim", 376)],
                    &[("obs_dim", 28_224)],
                ],
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    Box::new(move |twin| match twin {
                        Twin::Baseline => filling::<BeforeP26>(obs_dim),
                        Twin::Optimized => filling::<AfterP26>(obs_dim),
                    })
                },
            },
            Workload {
                name: "sample_256",
                sizes: &[
                    &[("obs_dim", 17)],
                    &[("obs_dim", 64)],
                    &[("obs_dim", 376)],
                    &[("obs_dim", 28_224)],
                ],
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    Box::new(move |twin| match twin {
                        Twin::Baseline => sampling::<BeforeP26>(obs_dim),
                        Twin::Optimized => sampling::<AfterP26>(obs_dim),
                    })
                },
            },
        ]
    }
}
