//! P8: parallel by rows, or by elements; with the baseline at every other seam. The optimised forms of
//! P16 and P17, which ship, decide by themselves when they use every core, so that nothing of this seam
//! is left under them.

use std::rc::Rc;

use rlox_core::Real;
use rlox_core::llm::ops::{ByElements, Ops};
use rlox_core::wiring;
use rlox_core::wiring::{AllBefore, all_before};

use super::sequences::narrow;
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Schedules;

wiring!(AfterP8 = all_before but { type Schedule = ByElements; });

fn token_kl<T: Real>(
    twin: Twin,
    policy: &[T],
    reference: &[T],
    mask: Option<&[u8]>,
    rows: usize,
) -> impl std::fmt::Debug + use<T> {
    match twin {
        Twin::Baseline => Ops::<AllBefore>::compute_token_kl(policy, reference, mask, rows),
        Twin::Optimized => Ops::<AfterP8>::compute_token_kl(policy, reference, mask, rows),
    }
}

fn group_advantages(
    twin: Twin,
    rewards: &[f64],
    group_size: usize,
) -> impl std::fmt::Debug + use<> {
    match twin {
        Twin::Baseline => Ops::<AllBefore>::compute_group_advantages(rewards, group_size, 1e-8),
        Twin::Optimized => Ops::<AfterP8>::compute_group_advantages(rewards, group_size, 1e-8),
    }
}

impl Pair for Schedules {
    fn id(&self) -> &'static str {
        "P8"
    }

    /// Around 16 rows and 4,096 elements, on either side of both thresholds.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let rows = case.of(&[1, 2, 15, 16, 17, 64]);
        let tokens = match case.below(4) {
            3 => 4_096 / rows + case.below(2),
            _ => case.below(9),
        };
        let (policy, reference) = (case.numbers(rows * tokens), case.numbers(rows * tokens));
        let mask = case.flags(rows * tokens, 2);
        let mask: Vec<u8> = mask.into_iter().map(u8::from).collect();
        let mask = case.once_in(2).then_some(&mask[..]);
        let kl = token_kl(twin, &policy, &reference, mask, rows);
        let (policy, reference) = (narrow(&policy), narrow(&reference));
        let kl32 = token_kl(twin, &policy, &reference, mask, rows);
        let mut rewards = case.numbers(rows * tokens);
        if !rewards.is_empty() && case.once_in(16) {
            rewards[0] = f64::NAN;
        }
        let advantages = group_advantages(twin, &rewards, tokens.max(1));
        format!("{kl:?} {kl32:?} {advantages:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "token_kl",
                sizes: &[
                    &[("batch", 16), ("length", 16)],
                    &[("batch", 16), ("length", 64)],
                    &[("batch", 16), ("length", 256)],
                    &[("batch", 4), ("length", 4_096)],
                    &[("batch", 8), ("length", 512)],
                    &[("batch", 32), ("length", 2_048)],
                ],
                prepare: |size| {
                    let (rows, n) = (number(size, "batch"), number(size, "length"));
                    let inputs = Rc::new((fixed_numbers(rows * n, 1), fixed_numbers(rows * n, 2)));
                    Box::new(move |twin| {
                        let inputs = Rc::clone(&inputs);
                        arm(move || token_kl(twin, &inputs.0, &inputs.1, None, rows))
                    })
                },
            },
            Workload {
                name: "group_advantages",
                sizes: &[
                    &[("groups", 16), ("group_size", 4)],
                    &[("groups", 256), ("group_size", 16)],
                    &[("groups", 1_024), ("group_size", 32)],
                    &[("groups", 8_192), ("group_size", 32)],
                ],
                prepare: |size| {
                    let (groups, n) = (number(size, "groups"), number(size, "group_size"));
                    let rewards = Rc::new(fixed_numbers(groups * n, 1));
                    Box::new(move |twin| {
                        let rewards = Rc::clone(&rewards);
                        arm(move || group_advantages(twin, &rewards, n))
                    })
                },
            },
        ]
    }
}
