//! P27: next observations written where they are expected again, or kept aside at once.

use rlox_core::buffer::observations::{ByIndex, Observations};
use rlox_core::wiring;
use rlox_core::wiring::shipped;

use super::p24_observations::script;
use super::rows_for;
use super::sequences::narrow;
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Arm, Pair, Size, Twin, Workload, arm, number};

pub(super) struct NextAside;

wiring!(BeforeP27 = shipped but { const P27: bool = false; });
wiring!(AfterP27 = shipped but { const P27: bool = true; });

/// Pushes one transition after the other to a full ring. `next` says which of four observations is the
/// next one of the transition that starts from the given one.
fn pushing(twin: Twin, obs_dim: usize, next: fn(usize) -> usize) -> Box<dyn Arm> {
    let capacity = rows_for(obs_dim);
    let rows = match twin {
        Twin::Baseline => ByIndex::<f32>::new::<BeforeP27>(capacity, obs_dim),
        Twin::Optimized => ByIndex::new::<AfterP27>(capacity, obs_dim),
    };
    let table = narrow(&fixed_numbers(4 * obs_dim, 1));
    let mut pushed = 0;
    let mut push = move |rows: &mut ByIndex<f32>| {
        let at = pushed % 4;
        let [obs, next_obs] = [at, next(at)].map(|i| &table[i * obs_dim..(i + 1) * obs_dim]);
        rows.push(pushed % capacity, obs, next_obs);
        pushed += 1;
        rows.next_obs((pushed - 1) % capacity)[0]
    };
    let rows = rows.map(|mut rows| {
        for _ in 0..2 * capacity {
            push(&mut rows); // so that no page is touched for the first time later
        }
        rows
    });
    let mut rows = rows.ok();
    arm(move || rows.as_mut().map(&mut push))
}

const SIZES: &[Size<'static>] = &[
    &[("obs_dim", 64)],
    &[("obs_dim", 1_024)],
    &[("obs_dim", 28_224)],
];

impl Pair for NextAside {
    fn id(&self) -> &'static str {
        "P27"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => script::<ByIndex<f32>, BeforeP27>(case),
            Twin::Optimized => script::<ByIndex<f32>, AfterP27>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "push_apart",
                sizes: SIZES,
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    Box::new(move |twin| pushing(twin, obs_dim, |at| (at + 2) % 4))
                },
            },
            Workload {
                name: "push_in_order",
                sizes: SIZES,
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    Box::new(move |twin| pushing(twin, obs_dim, |at| (at + 1) % 4))
                },
            },
        ]
    }
}
