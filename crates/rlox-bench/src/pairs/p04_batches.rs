//! P4: a batch made anew by every sample, or one that is kept and refilled.

use rlox_core::buffer::batch::Reused;
use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{BufferWiring, Replay};
use rlox_core::wiring;
use rlox_core::wiring::{Shipped, shipped};

use super::buffers::{ACT_DIM, Drawn, OBS_DIM, SAMPLE_SIZES, Wide, digest, rows_for, sample};
use crate::draw::Draw;
use crate::pair::{Arm, Pair, Twin, Workload, arm, number};

pub(super) struct BatchMemory;

wiring! {
    /// What ships, but for P4's seam.
    pub AfterP4 = shipped but { type Batches<O> = Reused<O>; }
}

/// Pushes and samples in turn, on either kind of buffer.
fn script<W: BufferWiring>(case: &mut Draw<'_>) -> String {
    let capacity = 1 + case.below(6);
    let (prioritized, seed) = (case.once_in(2), case.seed());
    let ring = RingBuffer::<f32, W>::new(capacity, OBS_DIM, ACT_DIM, seed);
    let tree = PriorityBuffer::<f32, W>::new(capacity, OBS_DIM, ACT_DIM, 0.6, 0.4, seed);
    match (prioritized, ring, tree) {
        (false, Ok(ring), _) => play(ring, case),
        (true, _, Ok(tree)) => play(tree, case),
        _ => String::new(),
    }
}

fn play(mut buffer: impl Replay<f32>, case: &mut Draw<'_>) -> String {
    let mut written = String::new();
    for _ in 0..2 + case.below(12) {
        if case.once_in(2) {
            let _ = buffer.append(&Drawn::draw(case).view(false).as_batch());
        } else {
            sample(&mut buffer, case, &mut written);
        }
    }
    written
}

/// Samples of 256, read and given back, as the binding does.
fn sampling<W: BufferWiring>(obs_dim: usize) -> Box<dyn Arm> {
    let mut ring = RingBuffer::<f32, W>::new(rows_for(obs_dim), obs_dim, 1, 0).ok();
    let transition = Wide::new(obs_dim, 1);
    if let Some(ring) = &mut ring {
        for row in 0..rows_for(obs_dim) {
            let _ = ring.append(&transition.view(row as f32).as_batch());
        }
    }
    arm(move || {
        let ring = ring.as_mut()?;
        let batch = ring.sample(256, None).ok()?;
        let digest = digest(&batch);
        ring.give_back(batch);
        Some(digest)
    })
}

impl Pair for BatchMemory {
    fn id(&self) -> &'static str {
        "P4"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => script::<Shipped>(case),
            Twin::Optimized => script::<AfterP4>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "sample_256",
            sizes: SAMPLE_SIZES,
            prepare: |size| {
                let obs_dim = number(size, "obs_dim");
                Box::new(move |twin| match twin {
                    Twin::Baseline => sampling::<Shipped>(obs_dim),
                    Twin::Optimized => sampling::<AfterP4>(obs_dim),
                })
            },
        }]
    }
}
