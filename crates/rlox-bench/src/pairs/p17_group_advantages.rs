//! P17: groups of rewards normalised one by one, or by whole vectors.

use std::cell::RefCell;
use std::rc::Rc;

use rlox_core::Real;
use rlox_core::llm::group_advantages::{baseline, optimized};
use rlox_core::wiring::shipped::Schedule;

use super::sequences::{marked, narrow};
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct GroupAdvantages;

fn run<T: Real>(twin: Twin, rewards: &[T], group_size: usize, advantages: &mut [T]) -> bool {
    let form = match twin {
        Twin::Baseline => baseline::normalise::<Schedule, T>,
        Twin::Optimized => optimized::normalise::<Schedule, T>,
    };
    form(rewards, group_size, 1e-8, advantages)
}

impl Pair for GroupAdvantages {
    fn id(&self) -> &'static str {
        "P17"
    }

    fn tolerance(&self) -> f64 {
        1e-12
    }

    /// Groups on either side of a vector's end, some all alike or all but one, as rewards of 0 and 1
    /// make them.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let (groups, group_size) = (case.below(5), 1 + case.below(36));
        let n = groups * group_size;
        let mut rewards = match case.below(3) {
            2 => vec![case.unit(); n],
            _ => case.numbers(n),
        };
        if n > 0 && case.once_in(2) {
            rewards[case.below(n)] = case.of(&[1.0, -40.0]);
        }
        if n > 0 && case.once_in(8) {
            rewards[case.below(n)] = case.of(&[f64::NAN, f64::INFINITY, 1e200]);
        }
        let mut advantages = vec![9.0; n];
        if !run::<f64>(twin, &rewards, group_size, &mut advantages) {
            return "not finite".into();
        }
        let mut single = vec![9.0; n];
        let finite = run::<f32>(twin, &narrow(&rewards), group_size, &mut single);
        format!("{advantages:?} {finite} {:?}", marked(&single))
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "group_advantages",
            sizes: &[
                &[("groups", 16), ("group_size", 4)],
                &[("groups", 256), ("group_size", 16)],
                &[("groups", 1_024), ("group_size", 32)],
            ],
            prepare: |size| {
                let (groups, n) = (number(size, "groups"), number(size, "group_size"));
                let rewards = Rc::new(fixed_numbers(groups * n, 1));
                let out = Rc::new(RefCell::new(vec![0.0; groups * n]));
                Box::new(move |twin| {
                    let (rewards, out) = (Rc::clone(&rewards), Rc::clone(&out));
                    arm(move || {
                        let out = &mut *out.borrow_mut();
                        let finite = run(twin, &rewards, n, out);
                        (finite, out[0], out[out.len() - 1])
                    })
                })
            },
        }]
    }
}
