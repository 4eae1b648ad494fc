//! What must hold of every pair in the list.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::PAIRS;
use crate::draw::Draw;
use crate::pair::{Pair, Twin, agree};

/// One test a pair, by its id.
macro_rules! the_twins_agree {
    ($($name:ident $id:literal)+) => {
        $(#[test]
        fn $name() {
            check(find($id));
        })+

        #[test]
        fn every_pair_is_tested() {
            let tested = [$($id),+];
            assert_eq!(PAIRS.iter().map(|pair| pair.id()).collect::<Vec<_>>(), tested);
        }
    };
}

the_twins_agree! {
    p1_twins_agree "P1"
    p2_twins_agree "P2"
    p3_twins_agree "P3"
    p4_twins_agree "P4"
    p5_twins_agree "P5"
    p7_twins_agree "P7"
    p8_twins_agree "P8"
    p9_twins_agree "P9"
    p10_twins_agree "P10"
    p12_twins_agree "P12"
    p13_twins_agree "P13"
    p19_twins_agree "P19"
    p20_twins_agree "P20"
    p21_twins_agree "P21"
    p22_twins_agree "P22"
    p24_twins_agree "P24"
}

fn find(id: &str) -> &'static dyn Pair {
    *PAIRS.iter().find(|pair| pair.id() == id).unwrap()
}

fn check(pair: &dyn Pair) {
    let mut runner = TestRunner::new(Config::with_cases(512));
    let choices = vec(any::<u64>(), 0..120);
    let agreed = runner.run(&choices, |choices| {
        agree(pair, &choices).map_err(TestCaseError::fail)
    });
    if let Err(error) = agreed {
        panic!("{error}");
    }
}

/// A pair whose outcome never changes would agree with anything.
#[test]
fn outcomes_depend_on_the_case() {
    for pair in PAIRS {
        let outcomes: std::collections::HashSet<_> = (0..32u64)
            .map(|seed| {
                let choices: Vec<u64> = crate::draw::fixed_numbers(120, seed)
                    .iter()
                    .map(|number| number.to_bits() >> 3)
                    .collect();
                pair.outcome(Twin::Baseline, &mut Draw::new(&choices))
            })
            .collect();
        assert!(outcomes.len() > 16, "{}: {}", pair.id(), outcomes.len());
    }
}

#[test]
fn both_arms_of_every_contest_do_the_same_work() {
    for pair in PAIRS {
        for workload in pair.workloads() {
            let contest = (workload.prepare)(workload.sizes[0]);
            let outcomes = [Twin::Baseline, Twin::Optimized].map(|twin| {
                let mut arm = contest(twin);
                arm.call();
                arm.call();
                arm.outcome()
            });
            assert_eq!(outcomes[0], outcomes[1], "{} {}", pair.id(), workload.name);
            assert_ne!(
                outcomes[0],
                "Some(None)",
                "{} {} does nothing",
                pair.id(),
                workload.name
            );
        }
    }
}
