//! P3: a transition copied twice or once on its way into a buffer.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::Replay;
use rlox_core::buffer::batch::Fresh;
use rlox_core::buffer::intake::{baseline, optimized};
use rlox_core::buffer::min_priority::Scan;
use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;

use super::buffers::{ACT_DIM, OBS_DIM, PUSH_SIZES, Transition, Wide, rows_for, sample};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Intake;

type Ring = RingBuffer<f32, Fresh<f32>>;
type Tree = PriorityBuffer<f32, Scan, Fresh<f32>>;

/// Pushes over the end of the ring, some of them refused, and samples in between.
fn script<B: Replay<f32>>(twin: Twin, mut buffer: B, case: &mut Draw<'_>) -> String {
    let mut written = String::new();
    for _ in 0..case.below(20) {
        let transition = Transition::draw(case);
        let experience = transition.view(case.once_in(8));
        let pushed = match twin {
            Twin::Baseline => baseline::push(&mut buffer, experience),
            Twin::Optimized => optimized::push(&mut buffer, experience),
        };
        let _ = writeln!(written, "{pushed:?} {}", buffer.storage().len());
        if case.once_in(4) {
            sample(&mut buffer, case, &mut written);
        }
    }
    sample(&mut buffer, case, &mut written);
    written
}

impl Pair for Intake {
    fn id(&self) -> &'static str {
        "P3"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let (capacity, seed) = (1 + case.below(6), case.seed());
        let ring = Ring::new(capacity, OBS_DIM, ACT_DIM, seed);
        let tree = Tree::new(capacity, OBS_DIM, ACT_DIM, 0.6, 0.4, seed);
        match (case.once_in(2), ring, tree) {
            (false, Ok(ring), _) => script(twin, ring, case),
            (true, _, Ok(mut tree)) => {
                // The largest priority is then not the one that a new buffer starts with.
                drop(tree.push_slices(Transition::draw(case).view(false)));
                drop(tree.update_priorities(&[0], &[case.of(&[1.0, 3.0])]));
                script(twin, tree, case)
            }
            _ => String::new(),
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
