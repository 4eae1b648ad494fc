//! P15: a step-major batch through GAE as it is compiled for any processor, or by its own vectors.

use std::cell::RefCell;
use std::rc::Rc;

use rlox_core::Real;
use rlox_core::training::gae::step_major::{baseline, optimized};

use super::sequences::{Steps, marked, narrow};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct GaeStepMajor;

fn run<T: Real>(
    twin: Twin,
    [rewards, values, dones, last_values]: [&[T]; 4],
    discounts: [f64; 2],
    (advantages, returns): (&mut [T], &mut [T]),
) {
    let [gamma, gae_lambda] = discounts.map(T::from_f64);
    let form = match twin {
        Twin::Baseline => baseline::advantages_and_returns,
        Twin::Optimized => optimized::advantages_and_returns,
    };
    form(
        rewards,
        values,
        dones,
        last_values,
        gamma,
        gae_lambda,
        advantages,
        returns,
    );
}

impl Pair for GaeStepMajor {
    fn id(&self) -> &'static str {
        "P15"
    }

    fn tolerance(&self) -> f64 {
        2e-13
    }

    /// From one environment to more than two vectors of them; what is not finite has to show in the
    /// first row.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let (n_envs, n_steps) = (1 + case.below(20), case.below(9));
        let n = n_envs * n_steps;
        let steps = Steps::draw(case, n_steps, n_envs);
        let discounts = [case.unit(), case.unit()];
        let columns = [
            &steps.rewards[..],
            &steps.values,
            &steps.dones,
            &steps.last_values,
        ];
        let (mut advantages, mut returns) = (vec![9.0; n], vec![9.0; n]);
        run::<f64>(twin, columns, discounts, (&mut advantages, &mut returns));
        if advantages.iter().take(n_envs).any(|a| !a.is_finite()) {
            return "not finite".into();
        }
        let columns = columns.map(narrow);
        let columns = columns.each_ref().map(|column| &column[..]);
        let (mut single, mut single_returns) = (vec![9.0; n], vec![9.0; n]);
        run::<f32>(twin, columns, discounts, (&mut single, &mut single_returns));
        let [single, single_returns] = [single, single_returns].map(|values| marked(&values));
        format!("{advantages:?} {returns:?} {single:?} {single_returns:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "gae_step_major",
            sizes: &[
                &[("n_envs", 8), ("n_steps", 128)],
                &[("n_envs", 64), ("n_steps", 128)],
                &[("n_envs", 256), ("n_steps", 2_048)],
            ],
            prepare: |size| {
                let (n_envs, n_steps) = (number(size, "n_envs"), number(size, "n_steps"));
                let n = n_envs * n_steps;
                let steps = Rc::new(Steps::fixed(n_steps, n_envs));
                let out = Rc::new(RefCell::new((vec![0.0; n], vec![0.0; n])));
                Box::new(move |twin| {
                    let (steps, out) = (Rc::clone(&steps), Rc::clone(&out));
                    arm(move || {
                        let columns = [
                            &steps.rewards[..],
                            &steps.values,
                            &steps.dones,
                            &steps.last_values,
                        ];
                        let (advantages, returns) = &mut *out.borrow_mut();
                        run(twin, columns, [0.99, 0.95], (advantages, returns));
                        (advantages[0], returns[n - 1])
                    })
                })
            },
        }]
    }
}
