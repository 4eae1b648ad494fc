//! P1: advantages of a rollout, environment by environment or all at once; each environment's by what
//! ships.

use std::rc::Rc;

use rlox_core::pipeline::rollout_gae::{Steps, advantages_and_returns};
use rlox_core::wiring;
use rlox_core::wiring::{Shipped, shipped};

use super::sequences;
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct RolloutGae;

wiring!(AfterP1 = shipped but { const P1: bool = true; });

fn run(
    twin: Twin,
    steps: &sequences::Steps,
    gamma: f64,
    gae_lambda: f64,
) -> impl std::fmt::Debug + use<> {
    let steps = Steps {
        rewards: &steps.rewards,
        values: &steps.values,
        dones: &steps.dones,
        last_values: &steps.last_values,
    };
    match twin {
        Twin::Baseline => advantages_and_returns::<Shipped>(steps, gamma, gae_lambda),
        Twin::Optimized => advantages_and_returns::<AfterP1>(steps, gamma, gae_lambda),
    }
    .map_err(|error| error.to_string().starts_with("values: is "))
}

impl Pair for RolloutGae {
    fn id(&self) -> &'static str {
        "P1"
    }

    /// From one environment of one step up to where the batched form uses every core.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let n_envs = case.of(&[1, 2, 3, 7, 64]);
        let n_steps = match case.below(16) {
            15 => 65_536 / n_envs + case.below(2),
            _ => 1 + case.below(24),
        };
        let steps = sequences::Steps::draw(case, n_steps, n_envs);
        format!("{:?}", run(twin, &steps, case.unit(), case.unit()))
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "rollout_gae",
            sizes: &[
                &[("n_envs", 8), ("n_steps", 128)],
                &[("n_envs", 64), ("n_steps", 128)],
                &[("n_envs", 256), ("n_steps", 128)],
            ],
            prepare: |size| {
                let steps =
                    sequences::Steps::fixed(number(size, "n_steps"), number(size, "n_envs"));
                let steps = Rc::new(steps);
                Box::new(move |twin| {
                    let steps = Rc::clone(&steps);
                    arm(move || run(twin, &steps, 0.99, 0.95))
                })
            },
        }]
    }
}
