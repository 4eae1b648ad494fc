//! P10: a map at every step, or only where there is something in it.

use std::collections::HashMap;

use rlox_core::env::info::{MapInfo, OptionalInfo, StepInfo};
use rlox_core::env::members::Member;
use rlox_core::env::obs_store::PerEnvObs;

use super::envs::{STEP_SIZES, stepping, trace};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, number};

pub(super) struct Infos;

/// A few facts, none among them; the built-in environments report none.
fn facts(case: &mut Draw<'_>) -> HashMap<String, f64> {
    (0..case.below(3))
        .map(|_| (case.of(&["reward", "speed"]).to_owned(), case.unit()))
        .collect()
}

fn read(info: &impl StepInfo) -> String {
    format!("{:?}", ["reward", "speed", ""].map(|name| info.get(name)))
}

impl Pair for Infos {
    fn id(&self) -> &'static str {
        "P10"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => {
                let facts = read(&MapInfo(facts(case)));
                facts + &trace::<Member<PerEnvObs, MapInfo>>(case)
            }
            Twin::Optimized => {
                let facts = facts(case);
                let info = OptionalInfo((!facts.is_empty()).then_some(facts));
                read(&info) + &trace::<Member<PerEnvObs, OptionalInfo>>(case)
            }
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
                    Twin::Optimized => stepping::<Member<PerEnvObs, OptionalInfo>>(n_envs),
                })
            },
        }]
    }
}
