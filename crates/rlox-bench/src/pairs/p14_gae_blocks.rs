//! P14: a sequence through GAE step by step, or eight steps at a time.

use std::cell::RefCell;
use std::rc::Rc;

use rlox_core::Real;
use rlox_core::training::gae::blocks::{baseline, optimized};
use rlox_core::wiring::Shipped;

use super::sequences::{Steps, marked, narrow};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct GaeBlocks;

fn run<T: Real>(
    twin: Twin,
    [rewards, values, dones]: [&[T]; 3],
    scalars: [f64; 3],
    (advantages, returns): (&mut [T], &mut [T]),
) {
    let [last_value, gamma, gae_lambda] = scalars.map(T::from_f64);
    let form = match twin {
        Twin::Baseline => baseline::advantages_and_returns::<Shipped, T>,
        Twin::Optimized => optimized::advantages_and_returns,
    };
    form(
        rewards, values, dones, last_value, gamma, gae_lambda, advantages, returns,
    );
}

impl Pair for GaeBlocks {
    fn id(&self) -> &'static str {
        "P14"
    }

    fn tolerance(&self) -> f64 {
        2e-13
    }

    /// Some blocks and what is left of one; what is not finite has to show in the first advantage.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let n = case.below(40);
        let steps = Steps::draw(case, n, 1);
        let scalars = [steps.last_values[0], case.unit(), case.unit()];
        let columns = [&steps.rewards[..], &steps.values, &steps.dones];
        let (mut advantages, mut returns) = (vec![9.0; n], vec![9.0; n]);
        run::<f64>(twin, columns, scalars, (&mut advantages, &mut returns));
        if advantages.first().is_some_and(|first| !first.is_finite()) {
            return "not finite".into();
        }
        let columns = columns.map(narrow);
        let columns = columns.each_ref().map(|column| &column[..]);
        let (mut single, mut single_returns) = (vec![9.0; n], vec![9.0; n]);
        run::<f32>(twin, columns, scalars, (&mut single, &mut single_returns));
        let [single, single_returns] = [single, single_returns].map(|values| marked(&values));
        format!("{advantages:?} {returns:?} {single:?} {single_returns:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "gae_and_returns",
            sizes: &[
                &[("n_steps", 128)],
                &[("n_steps", 2_048)],
                &[("n_steps", 32_768)],
            ],
            prepare: |size| {
                let n = number(size, "n_steps");
                let steps = Rc::new(Steps::fixed(n, 1));
                let out = Rc::new(RefCell::new((vec![0.0; n], vec![0.0; n])));
                Box::new(move |twin| {
                    let (steps, out) = (Rc::clone(&steps), Rc::clone(&out));
                    arm(move || {
                        let columns = [&steps.rewards[..], &steps.values, &steps.dones];
                        let (advantages, returns) = &mut *out.borrow_mut();
                        run(twin, columns, [0.5, 0.99, 0.95], (advantages, returns));
                        (advantages[0], returns[n - 1])
                    })
                })
            },
        }]
    }
}
