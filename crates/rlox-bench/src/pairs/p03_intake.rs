//! P3: a transition copied twice or once on its way into a buffer.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::Replay;
use rlox_core::buffer::batch::Fresh;
use rlox_core::buffer::intake::{baseline, optimized};
use rlox_core::buffer::ringbuf::RingBuffer;

use super::buffers::{ACT_DIM, OBS_DIM, Transition, Wide, rows_for, sample};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Intake;

type Ring = RingBuffer<f32, Fresh<f32>>;

impl Pair for Intake {
    fn id(&self) -> &'static str {
        "P3"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let mut written = String::new();
        let Ok(mut ring) = Ring::new(1 + case.below(6), OBS_DIM, ACT_DIM, case.seed()) else {
            return written;
        };
        for _ in 0..case.below(20) {
            let transition = Transition::draw(case);
            let experience = transition.view(case.once_in(8));
            let pushed = match twin {
                Twin::Baseline => baseline::push(&mut ring, experience),
                Twin::Optimized => optimized::push(&mut ring, experience),
            };
            let _ = writeln!(written, "{pushed:?} {}", ring.storage().len());
            if case.once_in(4) {
                sample(&mut ring, case, &mut written);
            }
        }
        sample(&mut ring, case, &mut written);
        written
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "push",
            sizes: &[
                &[("obs_dim", 3), ("act_dim", 1)],
                &[("obs_dim", 376), ("act_dim", 17)],
                &[("obs_dim", 28_224), ("act_dim", 1)],
            ],
            prepare: |size| {
                let (obs_dim, act_dim) = (number(size, "obs_dim"), number(size, "act_dim"));
                let transition = Rc::new(Wide::new(obs_dim, act_dim));
                Box::new(move |twin| {
                    let transition = Rc::clone(&transition);
                    let mut ring = Ring::new(rows_for(obs_dim), obs_dim, act_dim, 0).ok();
                    arm(move || {
                        let ring = ring.as_mut()?;
                        let pushed = match twin {
                            Twin::Baseline => baseline::push(ring, transition.view(1.0)),
                            Twin::Optimized => optimized::push(ring, transition.view(1.0)),
                        };
                        pushed.ok()
                    })
                })
            },
        }]
    }
}
