//! P2: observations in vectors of their own, or written into one.

use rlox_core::env::info::MapInfo;
use rlox_core::env::members::Member;
use rlox_core::env::obs_store::{FlatObs, PerEnvObs};

use super::envs::{STEP_SIZES, stepping, trace};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, number};

pub(super) struct ObsStores;

impl Pair for ObsStores {
    fn id(&self) -> &'static str {
        "P2"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => trace::<Member<PerEnvObs, MapInfo>>(case),
            Twin::Optimized => trace::<Member<FlatObs, MapInfo>>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "step",
            sizes: STEP_SIZES,
            prepare: |size| {
                let n_envs = number(size, "n_envs");
                Box::new(move |twin| match twin {
                    Twin::Baseline => stepping::<Member<PerEnvObs, MapInfo>>(n_envs),
                    Twin::Optimized => stepping::<Member<FlatObs, MapInfo>>(n_envs),
                })
            },
        }]
    }
}
