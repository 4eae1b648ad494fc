//! P3: a transition copied twice or once on its way into a buffer.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{BufferWiring, Replay, intake};
use rlox_core::wiring;
use rlox_core::wiring::{Shipped, shipped};

use super::buffers::{Drawn, PUSH_SIZES, Play, Wide, in_either_buffer, rows_for, sample};
use crate::draw::Draw;
use crate::pair::{Arm, Pair, Twin, Workload, arm, number};

pub(super) struct Intake;

wiring!(BeforeP3 = shipped but { const P3: bool = false; });

impl Play for Intake {
    const MOST: usize = 6;

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
            Twin::Baseline => in_either_buffer::<Self, BeforeP3>(case),
            Twin::Optimized => in_either_buffer::<Self, Shipped>(case),
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
