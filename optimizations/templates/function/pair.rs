//! $ID: $title.

use std::rc::Rc;

use rlox_core::$parent::$name::{baseline, optimized};

use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct $Name;

fn run(twin: Twin, input: &[f64]) -> impl std::fmt::Debug + use<> {
    match twin {
        Twin::Baseline => baseline::run(input),
        Twin::Optimized => optimized::run(input),
    }
}

impl Pair for $Name {
    fn id(&self) -> &'static str {
        "$ID"
    }

    /// To be written: every kind of input there is, the simplest first.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let n = case.below(20);
        format!("{:?}", run(twin, &case.numbers(n)))
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "$name",
            sizes: &[&[("n", 1_000)], &[("n", 100_000)]],
            prepare: |size| {
                let input = Rc::new(fixed_numbers(number(size, "n"), 0));
                Box::new(move |twin| {
                    let input = Rc::clone(&input);
                    arm(move || run(twin, &input))
                })
            },
        }]
    }
}
