//! P19: environments one by one, or eight by eight, component by component.

use rlox_core::env::info::OptionalInfo;
use rlox_core::env::lanes::Lanes;
use rlox_core::env::members::Member;
use rlox_core::env::obs_store::FlatObs;

use super::envs::{stepping, trace};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, number};

pub(super) struct SteppingPair;

type Before = Member<FlatObs, OptionalInfo>;

impl Pair for SteppingPair {
    fn id(&self) -> &'static str {
        "P19"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => trace::<Before>(case),
            Twin::Optimized => trace::<Lanes>(case),
        }
    }

    /// Of an observation in f32; sine and cosine differ in the last place of f64.
    fn tolerance(&self) -> f64 {
        2e-7
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "step",
            sizes: &[
                &[("n_envs", 1)],
                &[("n_envs", 8)],
                &[("n_envs", 64)],
                &[("n_envs", 1024)],
            ],
            prepare: |size| {
                let n_envs = number(size, "n_envs");
                Box::new(move |twin| match twin {
                    Twin::Baseline => stepping::<Before>(n_envs),
                    Twin::Optimized => stepping::<Lanes>(n_envs),
                })
            },
        }]
    }
}
