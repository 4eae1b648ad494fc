//! P3: a transition copied twice or once on its way into a buffer.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{BufferWiring, Replay, intake};
use rlox_core::wiring;
use rlox_core::wiring::{Shipped, shipped};

use super::buffers::{ACT_DIM, Drawn, OBS_DIM, PUSH_SIZES, Wide, rows_for, sample};
use crate::draw::Draw;
use crate::pair::{Arm, Pair, Twin, Workload, arm, number};

pub(super) struct Intake;

wiring!(BeforeP3 = shipped but { const P3: bool = false; });

/// Pushes over the end of the ring, some of them refused, and samples in between.
fn play<B: Replay<f32>>(mut buffer: B, case: &mut Draw<'_>) -> String {
    let mut written = String::new();
    for _ in 0..case.below(20) {
        let transition = Drawn::draw(case);
        let experience = transition.view(case.once_in(8));
        let pushed = intake::push(&mut buffer, experience);
        let _ = writeln!(written, "{pushed:?} {}", buffer.storage().len());
        if case.once_in(4) {
            sample(&mut buffer, case, &mut written);
        }
    }
    sample(&mut buffer, case, &mut written);
    written
}

/// On either kind of buffer.
fn script<W: BufferWiring>(case: &mut Draw<'_>) -> String {
    let (capacity, seed) = (1 + case.below(6), case.seed());
    let ring = RingBuffer::<f32, W>::new(capacity, OBS_DIM, ACT_DIM, seed);
    let tree = PriorityBuffer::<f32, W>::new(capacity, OBS_DIM, ACT_DIM, 0.6, 0.4, seed);
    match (case.once_in(2), ring, tree) {
        (false, Ok(ring), _) => play(ring, case),
        (true, _, Ok(mut tree)) => {
            // The largest priority is then not the one that a new buffer starts with.
            drop(tree.append(&Drawn::draw(case).view(false).as_batch()));
            drop(tree.update_priorities(&[0], &[case.of(&[1.0, 3.0])]));
            play(tree, case)
        }
        _ => String::new(),
    }
}

/// The same transition over and over.
fn pushing<W: BufferWiring>(transition: Rc<Wide>, obs_dim: usize, act_dim: usize) -> Box<dyn Arm> {
    let mut ring = RingBuffer::<f32, W>::new(rows_for(obs_dim), obs_dim, act_dim, 0).ok();
    arm(move || intake::push(ring.as_mut()?, transition.view(1.0)).ok())
}

impl Pair for Intake {
    fn id(&self) -> &'static str {
        "P3"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => script::<BeforeP3>(case),
            Twin::Optimized => script::<Shipped>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "push",
            sizes: PUSH_SIZES,
            prepare: |size| {
                let (obs_dim, act_dim) = (number(size, "obs_dim"), number(size, "act_dim"));
                let transition = Rc::new(Wide::new(obs_dim, act_dim));
                Box::new(move |twin| {
                    let transition = Rc::clone(&transition);
                    match twin {
                        Twin::Baseline => pushing::<BeforeP3>(transition, obs_dim, act_dim),
                        Twin::Optimized => pushing::<Shipped>(transition, obs_dim, act_dim),
                    }
                })
            },
        }]
    }
}
