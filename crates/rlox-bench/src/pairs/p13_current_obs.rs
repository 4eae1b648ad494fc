//! P13: the observations to act on, collected anew or copied into what is there.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::env::info::MapInfo;
use rlox_core::env::members::Member;
use rlox_core::env::obs_store::PerEnvObs;
use rlox_core::env::vec_env::{Reset, VecEnv};
use rlox_core::pipeline::current_obs::{baseline, optimized};

use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct CurrentObs;

/// The first observations of `n_envs` environments.
fn observed(env_id: &str, n_envs: usize, seed: u64) -> PerEnvObs {
    let env = VecEnv::<Member<PerEnvObs, MapInfo>>::new(env_id, n_envs, seed.into());
    let obs = env.and_then(|mut env| env.reset(Reset::default()).cloned());
    obs.unwrap_or_default()
}

fn refresh(twin: Twin, current: &mut Vec<f32>, obs: &PerEnvObs) {
    match twin {
        Twin::Baseline => baseline::refresh(current, obs),
        Twin::Optimized => optimized::refresh(current, obs),
    }
}

impl Pair for CurrentObs {
    fn id(&self) -> &'static str {
        "P13"
    }

    /// Refreshed over and over, also by fewer and narrower observations than before.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let (mut current, mut written) = (Vec::new(), String::new());
        for _ in 0..1 + case.below(5) {
            let env_id = case.of(&["CartPole-v1", "Pendulum-v1"]);
            let obs = observed(env_id, 1 + case.below(4), case.seed());
            refresh(twin, &mut current, &obs);
            let _ = writeln!(written, "{current:?}");
        }
        written
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "refresh",
            sizes: &[&[("n_envs", 8)], &[("n_envs", 64)], &[("n_envs", 1024)]],
            prepare: |size| {
                let obs = Rc::new(observed("CartPole-v1", number(size, "n_envs"), 0));
                Box::new(move |twin| {
                    let (obs, mut current) = (Rc::clone(&obs), Vec::new());
                    arm(move || {
                        refresh(twin, &mut current, &obs);
                        current.last().copied()
                    })
                })
            },
        }]
    }
}
