//! P12: a transition stored by way of a record that owns its arrays, or as it lies there.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::push::{baseline, optimized};
use rlox_core::buffer::storage;
use rlox_core::wiring::Shipped;

use super::buffers::{ACT_DIM, Drawn, OBS_DIM, PUSH_SIZES, Wide, rows_for};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Push;

/// What both twins push into.
type Storage = storage::Storage<f32, Shipped>;

impl Pair for Push {
    fn id(&self) -> &'static str {
        "P12"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let mut written = String::new();
        let Ok(mut storage) = Storage::new(1 + case.below(6), OBS_DIM, ACT_DIM) else {
            return written;
        };
        for _ in 0..case.below(20) {
            let transition = Drawn::draw(case);
            let experience = transition.view(case.once_in(8));
            let row = match twin {
                Twin::Baseline => baseline::push(&mut storage, experience),
                Twin::Optimized => optimized::push(&mut storage, experience),
            };
            let _ = writeln!(written, "{row:?}");
        }
        let rows: Vec<_> = (0..storage.len()).map(|row| storage.row(row)).collect();
        let _ = write!(written, "{rows:?}");
        written
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "push_slices",
            sizes: PUSH_SIZES,
            prepare: |size| {
                let (obs_dim, act_dim) = (number(size, "obs_dim"), number(size, "act_dim"));
                let transition = Rc::new(Wide::new(obs_dim, act_dim));
                Box::new(move |twin| {
                    let transition = Rc::clone(&transition);
                    let mut storage = Storage::new(rows_for(obs_dim), obs_dim, act_dim).ok();
                    arm(move || {
                        let storage = storage.as_mut()?;
                        let row = match twin {
                            Twin::Baseline => baseline::push(storage, transition.view(1.0)),
                            Twin::Optimized => optimized::push(storage, transition.view(1.0)),
                        };
                        row.ok()
                    })
                })
            },
        }]
    }
}
