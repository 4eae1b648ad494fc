//! P20: a sample row by row into a new batch, or column by column into one that is kept.

use std::fmt::Write;

use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{Experience, Replay};
use rlox_core::wiring::Shipped;

use super::buffers::{digest, full, kept, rows_for};
use crate::draw::Draw;
use crate::pair::{Arm, Pair, Size, Twin, Workload, arm, number};

pub(super) struct IntoColumns;

const ACT_DIM: usize = 2;

/// Pushes over the end of the ring and samples, of observations narrow and wide; `pushed` is what
/// follows a push.
fn play<B: Replay<f32>>(
    twin: Twin,
    mut buffer: B,
    weighted: bool,
    case: &mut Draw<'_>,
    pushed: impl Fn(&mut B, &mut Draw<'_>),
) -> String {
    let (mut written, obs_dim) = (String::new(), buffer.storage().obs_dim());
    for _ in 0..2 + case.below(12) {
        if case.once_in(2) {
            let numbers: Vec<f32> = case
                .numbers(2 * obs_dim + ACT_DIM + 1)
                .iter()
                .map(|&number| number as f32)
                .collect();
            let (obs, rest) = numbers.split_at(obs_dim);
            let (next_obs, rest) = rest.split_at(obs_dim);
            let one = Experience {
                obs,
                next_obs,
                action: &rest[..ACT_DIM],
                reward: rest[ACT_DIM],
                terminated: case.once_in(3),
                truncated: case.once_in(3),
            };
            if buffer.append(&one.as_batch()).is_ok() {
                pushed(&mut buffer, case);
            }
            continue;
        }
        let n = case.of(&[1, 2, 5, 17]);
        let seed = case.once_in(3).then(|| case.seed());
        let batch = match twin {
            Twin::Baseline => buffer.sample(n, seed),
            Twin::Optimized => {
                let mut batch = kept(n, obs_dim, ACT_DIM, weighted);
                let drawn = buffer.sample_into(seed, &mut batch.columns());
                drawn.map(|()| batch)
            }
        };
        let _ = writeln!(written, "{batch:?}");
    }
    written
}

/// Samples of 256 of a full ring.
fn sampling(twin: Twin, obs_dim: usize) -> Box<dyn Arm> {
    let mut ring = full::<Shipped>(rows_for(obs_dim), obs_dim);
    let mut columns = kept(256, obs_dim, 1, false);
    arm(move || {
        let ring = ring.as_mut()?;
        match twin {
            Twin::Baseline => Some(digest(&ring.sample(256, None).ok()?)),
            Twin::Optimized => {
                ring.sample_into(None, &mut columns.columns()).ok()?;
                Some(digest(&columns))
            }
        }
    })
}

const SIZES: &[Size<'static>] = &[
    &[("obs_dim", 4)],
    &[("obs_dim", 376)],
    &[("obs_dim", 28_224)],
];

impl Pair for IntoColumns {
    fn id(&self) -> &'static str {
        "P20"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let (capacity, obs_dim) = (1 + case.below(6), 1 + case.below(6));
        let (prioritized, seed) = (case.once_in(2), case.seed());
        let ring = RingBuffer::<f32, Shipped>::new(capacity, obs_dim, ACT_DIM, seed);
        let tree = PriorityBuffer::<f32, Shipped>::new(capacity, obs_dim, ACT_DIM, 0.6, 0.4, seed);
        match (prioritized, ring, tree) {
            (false, Ok(ring), _) => play(twin, ring, false, case, |_, _| ()),
            (true, _, Ok(tree)) => play(twin, tree, true, case, |tree, case| {
                let row = case.below(tree.storage().len()) as i64;
                let _ = tree.update_priorities(&[row], &[case.of(&[0.1, 1.0, 3.0])]);
            }),
            _ => String::new(),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "sample_256",
            sizes: SIZES,
            prepare: |size| {
                let obs_dim = number(size, "obs_dim");
                Box::new(move |twin| sampling(twin, obs_dim))
            },
        }]
    }
}
