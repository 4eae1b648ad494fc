//! P16: the k3 of tokens one by one, or by whole vectors.

use std::rc::Rc;

use rlox_core::Real;
use rlox_core::llm::token_kl::{baseline, optimized};
use rlox_core::wiring::shipped::Schedule;

use super::sequences::{Marked, marked, narrow};
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Contest, Pair, Size, Twin, Workload, arm, number};

pub(super) struct TokenKl;

fn run<T: Real>(
    twin: Twin,
    [policy, reference]: [&[T]; 2],
    mask: Option<&[u8]>,
    rows: usize,
) -> Vec<T> {
    let mut sums = vec![T::zero(); rows];
    match twin {
        Twin::Baseline => baseline::k3_sums::<Schedule, T>(policy, reference, mask, &mut sums),
        Twin::Optimized => optimized::k3_sums::<Schedule, T>(policy, reference, mask, &mut sums),
    }
    sums
}

/// Both twins on the same log-probabilities, which lie within 0.25 of each other.
fn contest<T: Real>(size: Size<'_>) -> Contest {
    let (rows, n) = (number(size, "batch"), number(size, "length"));
    let policy: Vec<f64> = fixed_numbers(rows * n, 1).iter().map(|x| x - 1.0).collect();
    let noise = fixed_numbers(rows * n, 2);
    let reference: Vec<f64> = policy
        .iter()
        .zip(&noise)
        .map(|(p, x)| p + x / 4.0)
        .collect();
    let tokens: [Vec<T>; 2] =
        [policy, reference].map(|tokens| tokens.into_iter().map(T::from_f64).collect());
    let tokens = Rc::new(tokens);
    Box::new(move |twin| {
        let tokens = Rc::clone(&tokens);
        arm(move || {
            run(twin, [&tokens[0], &tokens[1]], None, rows)
                .pop()
                .map(Marked)
        })
    })
}

impl Pair for TokenKl {
    fn id(&self) -> &'static str {
        "P16"
    }

    fn tolerance(&self) -> f64 {
        1e-14
    }

    /// On either side of a block's end; now and then a token that only the baseline can take, or none.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let rows = case.of(&[1, 2, 5, 17]);
        let tokens = match case.below(4) {
            3 => 127 + case.below(4),
            _ => case.below(20),
        };
        let n = rows * tokens;
        let (mut policy, reference) = (case.numbers(n), case.numbers(n));
        let mask: Vec<u8> = case.flags(n, 2).into_iter().map(u8::from).collect();
        let mask = case.once_in(2).then_some(&mask[..]);
        if n > 0 && case.once_in(4) {
            let extremes = [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -90.0, 90.0];
            policy[case.below(n)] = case.of(&extremes);
        }
        let wide = run::<f64>(twin, [&policy, &reference], mask, rows);
        let single = run::<f32>(twin, [&narrow(&policy), &narrow(&reference)], mask, rows);
        format!("{wide:?} {:?}", marked(&single))
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "token_kl_f32",
                sizes: &[
                    &[("batch", 1), ("length", 128)],
                    &[("batch", 1), ("length", 2_048)],
                    &[("batch", 1), ("length", 8_192)],
                    &[("batch", 32), ("length", 2_048)],
                ],
                prepare: contest::<f32>,
            },
            Workload {
                name: "token_kl_f64",
                sizes: &[
                    &[("batch", 1), ("length", 2_048)],
                    &[("batch", 32), ("length", 2_048)],
                ],
                prepare: contest::<f64>,
            },
        ]
    }
}
