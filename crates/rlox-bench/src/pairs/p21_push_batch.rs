//! P21: many transitions stored one by one, or column by column.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{BufferWiring, ExperienceBatch, Replay};
use rlox_core::wiring;
use rlox_core::wiring::{Shipped, shipped};

use super::buffers::{ACT_DIM, Drawn, OBS_DIM, Play, in_either_buffer, sample};
use super::sequences::narrow;
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Arm, Pair, Twin, Workload, arm, number};

pub(super) struct PushBatch;

wiring!(BeforeP21 = shipped but { const P21: bool = false; });

/// Transitions column by column.
struct Table {
    obs: Vec<f32>,
    next_obs: Vec<f32>,
    action: Vec<f32>,
    reward: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl Table {
    fn draw(n: usize, case: &mut Draw<'_>) -> Self {
        Self {
            obs: narrow(&case.numbers(n * OBS_DIM)),
            next_obs: narrow(&case.numbers(n * OBS_DIM)),
            action: narrow(&case.numbers(n * ACT_DIM)),
            reward: narrow(&case.numbers(n)),
            terminated: case.flags(n, 3),
            truncated: case.flags(n, 3),
        }
    }

    fn view(&self) -> ExperienceBatch<'_, f32> {
        ExperienceBatch {
            obs: &self.obs,
            next_obs: &self.next_obs,
            action: &self.action,
            reward: &self.reward,
            terminated: &self.terminated,
            truncated: &self.truncated,
        }
    }
}

impl Play for PushBatch {
    const MOST: usize = 9;

    /// Batches of any size, more than the ring holds among them and some of them refused, with single
    /// pushes and samples in between; in the end every row.
    fn play<B: Replay<f32>>(mut buffer: B, case: &mut Draw<'_>) -> String {
        let mut written = String::new();
        for _ in 0..1 + case.below(8) {
            let n = case.below(14);
            let mut table = Table::draw(n, case);
            if n > 0 && case.once_in(8) {
                table.reward[n - 1] = f32::NAN;
            }
            let pushed = buffer.append(&table.view());
            let _ = writeln!(written, "{pushed:?}");
            if case.once_in(3) {
                let _ = buffer.append(&Drawn::draw(case).view(false).as_batch());
            }
            if case.once_in(3) {
                sample(&mut buffer, case, &mut written);
            }
        }
        sample(&mut buffer, case, &mut written);
        let storage = buffer.storage();
        let rows: Vec<_> = (0..storage.len()).map(|row| storage.row(row)).collect();
        let _ = write!(written, "{rows:?}");
        written
    }
}

/// The same batch over and over.
fn pushing<W: BufferWiring>(table: Rc<Table>, obs_dim: usize) -> Box<dyn Arm> {
    let mut ring = RingBuffer::<f32, W>::new(super::rows_for(obs_dim), obs_dim, 1, 0).ok();
    arm(move || ring.as_mut()?.append(&table.view()).ok())
}

impl Pair for PushBatch {
    fn id(&self) -> &'static str {
        "P21"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => in_either_buffer::<Self, BeforeP21>(case),
            Twin::Optimized => in_either_buffer::<Self, Shipped>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "push_batch",
            sizes: &[
                &[("n", 8), ("obs_dim", 4)],
                &[("n", 64), ("obs_dim", 4)],
                &[("n", 64), ("obs_dim", 376)],
            ],
            prepare: |size| {
                let (n, obs_dim) = (number(size, "n"), number(size, "obs_dim"));
                let numbers = |n, seed| narrow(&fixed_numbers(n, seed));
                let table = Rc::new(Table {
                    obs: numbers(n * obs_dim, 1),
                    next_obs: numbers(n * obs_dim, 2),
                    action: numbers(n, 3),
                    reward: numbers(n, 4),
                    terminated: vec![false; n],
                    truncated: vec![false; n],
                });
                Box::new(move |twin| match twin {
                    Twin::Baseline => pushing::<BeforeP21>(Rc::clone(&table), obs_dim),
                    Twin::Optimized => pushing::<Shipped>(Rc::clone(&table), obs_dim),
                })
            },
        }]
    }
}
