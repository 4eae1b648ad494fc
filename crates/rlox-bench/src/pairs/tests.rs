//! What must hold of every pair in the list.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::PAIRS;
use crate::draw::Draw;
use crate::pair::{Pair, Twin, agree, same};
use crate::timing::NOTHING;

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
    p14_twins_agree "P14"
    p15_twins_agree "P15"
    p16_twins_agree "P16"
    p17_twins_agree "P17"
    p18_twins_agree "P18"
    p19_twins_agree "P19"
    p20_twins_agree "P20"
    p21_twins_agree "P21"
    p22_twins_agree "P22"
    p24_twins_agree "P24"
    p26_twins_agree "P26"
    p27_twins_agree "P27"
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
fn outcomes_may_differ_in_their_numbers_alone_and_by_the_tolerance() {
    let before = "Ok([1.0, 200.0, NaN]) 3.0f32";
    assert!(same(before, before, 0.0).is_ok());
    for (after, tolerance, agrees) in [
        ("Ok([1.0, 200.0000001, NaN]) 3.0f32", 1e-9, true),
        ("Ok([1.0, 200.0000001, NaN]) 3.0f32", 1e-10, false),
        ("Ok([1.0, 200.0000001, NaN]) 3.0f32", 0.0, false),
        ("Ok([1.0, 200.0, NaN]) 3.0001f32", 1e-13, true),
        ("Ok([1.0, 200.0, NaN]) 3.0001f32", 1e-14, false),
        ("Ok([1.0, 200.0, NaN]) 3.0", 1e-3, false),
        ("Ok([1.0, 200.0, 7.0]) 3.0f32", 1e-3, false),
        ("Ok([1.0, 200.0]) 3.0f32", 1e-3, false),
        ("Err([1.0, 200.0, NaN]) 3.0f32", 1e-3, false),
    ] {
        assert_eq!(
            same(before, after, tolerance).is_ok(),
            agrees,
            "{after} {tolerance}"
        );
    }
    for [before, after] in [["inf", "3.0"], ["3.0", "inf"], ["-inff32", "inff32"]] {
        assert!(same(before, before, 1e-3).is_ok());
        assert!(same(before, after, 1e-3).is_err(), "{before} {after}");
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
            let agreed = same(&outcomes[0], &outcomes[1], pair.tolerance());
            assert_eq!(agreed, Ok(()), "{} {}", pair.id(), workload.name);
            assert_ne!(
                outcomes[0],
                NOTHING,
                "{} {} does nothing",
                pair.id(),
                workload.name
            );
        }
    }
}
