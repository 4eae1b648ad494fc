//! P7: GAE's loop that asks for the last step, or has it peeled out.

use std::cell::RefCell;
use std::rc::Rc;

use rlox_core::Real;
use rlox_core::training::gae::{baseline, optimized};

use super::sequences::{Steps, narrow};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Gae;

fn run<T: Real>(
    twin: Twin,
    [rewards, values, dones]: [&[T]; 3],
    [last_value, gamma, gae_lambda]: [f64; 3],
    advantages: &mut [T],
) {
    let [last_value, gamma, gae_lambda] = [last_value, gamma, gae_lambda].map(T::from_f64);
    match twin {
        Twin::Baseline => {
            baseline::advantages(
                rewards, values, dones, last_value, gamma, gae_lambda, advantages,
            );
        }
        Twin::Optimized => {
            optimized::advantages(
                rewards, values, dones, last_value, gamma, gae_lambda, advantages,
            );
        }
    }
}

impl Pair for Gae {
    fn id(&self) -> &'static str {
        "P7"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let n = case.below(20);
        let steps = Steps::draw(case, n, 1);
        let scalars = [steps.last_values[0], case.unit(), case.unit()];
        let columns = [&steps.rewards[..], &steps.values, &steps.dones];
        let narrow = columns.map(narrow);
        let (mut wide, mut single) = (vec![9.0; n], vec![9.0; n]);
        run::<f64>(twin, columns, scalars, &mut wide);
        run::<f32>(
            twin,
            narrow.each_ref().map(|column| &column[..]),
            scalars,
            &mut single,
        );
        format!("{wide:?} {single:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "gae",
            sizes: &[
                &[("n_steps", 128)],
                &[("n_steps", 2_048)],
                &[("n_steps", 65_536)],
            ],
            prepare: |size| {
                let n = number(size, "n_steps");
                let steps = Rc::new(Steps::fixed(n, 1));
                let advantages = Rc::new(RefCell::new(vec![0.0; n]));
                Box::new(move |twin| {
                    let (steps, advantages) = (Rc::clone(&steps), Rc::clone(&advantages));
                    arm(move || {
                        let columns = [&steps.rewards[..], &steps.values, &steps.dones];
                        let mut out = advantages.borrow_mut();
                        run(twin, columns, [0.5, 0.99, 0.95], &mut out);
                        (out[0], out[out.len() - 1])
                    })
                })
            },
        }]
    }
}
