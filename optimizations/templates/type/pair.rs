//! $ID: $title.

use std::rc::Rc;

use rlox_core::$parent::$name::{$Name, ${Name}Baseline, ${Name}Optimized};

use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Arm, Pair, Twin, Workload, arm, number};

pub(super) struct ${Name}Pair;

/// To be written: every kind of use there is, the simplest first.
fn script<S: $Name>(case: &mut Draw<'_>) -> String {
    let mut seam = S::default();
    let n = case.below(20);
    format!("{:?}", seam.run(&case.numbers(n)))
}

fn running<S: $Name + 'static>(input: Rc<Vec<f64>>) -> Box<dyn Arm> {
    let mut seam = S::default();
    arm(move || seam.run(&input))
}

impl Pair for ${Name}Pair {
    fn id(&self) -> &'static str {
        "$ID"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => script::<${Name}Baseline>(case),
            Twin::Optimized => script::<${Name}Optimized>(case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "$name",
            sizes: &[&[("n", 1_000)], &[("n", 100_000)]],
            prepare: |size| {
                let input = Rc::new(fixed_numbers(number(size, "n"), 0));
                Box::new(move |twin| match twin {
                    Twin::Baseline => running::<${Name}Baseline>(Rc::clone(&input)),
                    Twin::Optimized => running::<${Name}Optimized>(Rc::clone(&input)),
                })
            },
        }]
    }
}
