//! What must hold of the language-model operations under every schedule.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::switchboard::LlmOps;

struct Always;

impl Schedule for Always {
    fn token_kl(_: usize, _: usize) -> bool {
        true
    }
    fn group_advantages(_: usize, _: usize) -> bool {
        true
    }
}

proptest! {
    #[test]
    fn kl_is_never_negative_and_zero_for_equal_policies(
        tokens in vec((-20.0..0.0, -20.0..0.0), 1..64),
    ) {
        let (policy, reference): (Vec<f64>, Vec<f64>) = tokens.into_iter().unzip();
        prop_assert!(LlmOps::compute_token_kl(&policy, &reference, None, 1).unwrap()[0] >= 0.0);
        prop_assert_eq!(LlmOps::compute_token_kl(&policy, &policy, None, 1).unwrap(), vec![0.0]);
    }

    #[test]
    fn every_schedule_gives_the_same_bits(rows in 1usize..40, n_tokens in 0usize..20, seed in vec(-5.0f64..0.0, 1600)) {
        let elements = rows * n_tokens;
        let (policy, reference) = (&seed[..elements], &seed[800..800 + elements]);
        let mask: Vec<bool> = policy.iter().map(|&p| p > -3.0).collect();
        for mask in [None, Some(&mask[..])] {
            prop_assert_eq!(
                Ops::<ByRows>::compute_token_kl(policy, reference, mask, rows).unwrap(),
                Ops::<Always>::compute_token_kl(policy, reference, mask, rows).unwrap()
            );
        }
        let rewards = &seed[..rows * 4];
        prop_assert_eq!(
            Ops::<ByRows>::compute_group_advantages(rewards, 4, 1e-8).unwrap(),
            Ops::<Always>::compute_group_advantages(rewards, 4, 1e-8).unwrap()
        );
    }

    #[test]
    fn groups_come_out_with_mean_zero_and_deviation_one(group in vec(-100.0f64..100.0, 2..20)) {
        let n = group.len();
        let spread = group.iter().any(|r| (r - group[0]).abs() > 1e-3);
        prop_assume!(spread);
        let advantages = LlmOps::compute_group_advantages(&group, n, 1e-8).unwrap();
        let mean = advantages.iter().sum::<f64>() / n as f64;
        let variance = advantages.iter().map(|a| a * a).sum::<f64>() / n as f64;
        prop_assert!(mean.abs() < 1e-9 && (variance - 1.0).abs() < 1e-3, "{mean} {variance}");
    }
}

#[test]
fn k3_by_hand() {
    let half = 0.5f64.ln();
    // d = ln 0.5 and ln 2: 0.5 + ln 2 - 1 and 2 - ln 2 - 1.
    let kl = LlmOps::compute_token_kl(&[0.0, half], &[half, 0.0], None, 2).unwrap();
    assert!((kl[0] - (2f64.ln() - 0.5)).abs() < 1e-15);
    assert!((kl[1] - (1.0 - 2f64.ln())).abs() < 1e-15);
}

#[test]
fn f32_keeps_its_digits_where_the_policies_are_close() {
    let kl = LlmOps::compute_token_kl(&[-1.0f32], &[-1.0 + 1.0 / 1024.0], None, 1).unwrap();
    let d = 1.0 / 1024.0f64;
    assert!((f64::from(kl[0]) / (d.exp_m1() - d) - 1.0).abs() < 1e-6);
}

#[test]
fn masked_tokens_may_hold_anything() {
    let mask = [true, false];
    let kl = LlmOps::compute_token_kl(&[-1.0, f64::NAN], &[-1.0, -2.0], Some(&mask), 1).unwrap();
    assert_eq!(kl, vec![0.0]);
    let error = LlmOps::compute_token_kl(&[-1.0, f64::NAN], &[-1.0, -2.0], None, 1).unwrap_err();
    assert!(error.to_string().contains("sequence 0 NaN"), "{error}");
}

#[test]
fn a_constant_group_has_no_advantage() {
    let advantages = LlmOps::compute_group_advantages(&[2.0f32; 6], 3, 1e-8).unwrap();
    assert_eq!(advantages, vec![0.0; 6]);
}

#[test]
fn bad_arguments_are_named() {
    let four = [0.0f64; 4];
    let kl = LlmOps::compute_token_kl::<f64>;
    let groups = LlmOps::compute_group_advantages::<f64>;
    for (error, name) in [
        (kl(&four, &four[..3], None, 2), "log_probs_ref"),
        (kl(&four, &four, Some(&[true]), 2), "mask"),
        (kl(&four, &four, None, 3), "log_probs_policy"),
        (groups(&four, 0, 1e-8), "group_size"),
        (groups(&four, 3, 1e-8), "group_size"),
        (groups(&four, 2, 0.0), "epsilon"),
        (groups(&[0.0, f64::NAN], 2, 1e-8), "rewards"),
        (groups(&[f64::MAX, f64::MIN], 2, 1e-8), "rewards"),
    ] {
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
}
