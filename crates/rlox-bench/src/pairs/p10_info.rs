//! P10: a map at every step, or only where there is something in it.

use rlox_core::env::info::{MapInfo, OptionalInfo};
use rlox_core::env::obs_store::PerEnvObs;

use super::envs::{stepping, trace};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, number};

pub(super) struct Infos;

impl Pair for Infos {
    fn id(&self) -> &'static str {
        "P10"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => trace::<PerEnvObs, MapInfo>(case),
            Twin::Optimized => trace::<PerEnvObs, OptionalInfo>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "step",
            sizes: &[&[("n_envs", 8)], &[("n_envs", 64)], &[("n_envs", 1024)]],
            prepare: |size| {
                let n_envs = number(size, "n_envs");
                Box::new(move |twin| match twin {
                    Twin::Baseline => stepping::<PerEnvObs, MapInfo>(n_envs),
                    Twin::Optimized => stepping::<PerEnvObs, OptionalInfo>(n_envs),
                })
            },
        }]
    }
}
