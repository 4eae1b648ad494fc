//! What must hold of the language-model operations under every schedule.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::W;
use crate::Real;
use crate::llm::ops::{ByRows, Ops, Schedule};
use crate::llm::{group_advantages, token_kl};
use crate::simd::at_every_level;
use crate::wiring::{AllBefore, all_before};

type LlmOps = Ops<W>;

struct Always;

crate::wiring! { Shared = all_before but { type Schedule = Always; } }

impl Schedule for Always {
    fn token_kl(_: usize, _: usize) -> bool {
        true
    }
    fn group_advantages(_: usize, _: usize) -> bool {
        true
    }
}

fn assert_near<T: Real>(before: &[T], after: &[T], tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(before.len(), after.len());
    for (&before, &after) in before.iter().zip(after) {
        let (before, after): (f64, f64) = (before.into(), after.into());
        let near =
            before.is_finite() && (after - before).abs() <= tolerance * before.abs().max(1.0);
        let same = before == after || (before.is_nan() && after.is_nan());
        prop_assert!(same || near, "{before} {after}");
    }
    Ok(())
}

/// Asserts that P16's two forms agree in the type T; `tolerance` is relative to the sums.
fn assert_kl_agrees<T: Real>(
    tokens: [&[f64]; 2],
    mask: Option<&[u8]>,
    rows: usize,
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let [policy, reference] =
        tokens.map(|tokens| tokens.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>());
    let (mut before, mut after) = (vec![T::one(); rows], vec![T::one(); rows]);
    token_kl::baseline::k3_sums::<ByRows, T>(&policy, &reference, mask, &mut before);
    token_kl::optimized::k3_sums::<ByRows, T>(&policy, &reference, mask, &mut after);
    assert_near(&before, &after, tolerance)
}

proptest! {
    /// Sequences a little shorter and longer than whole blocks; NaN, infinite and extreme tokens where
    /// they are masked.
    #[test]
    fn a_vector_pass_over_tokens_agrees_with_single_ones_at_every_level(
        rows in 1usize..4, n_tokens in prop_oneof![0usize..20, 120usize..140, 255usize..258],
        seed in vec((-10.0..0.0, -10.0..0.0, prop::bool::weighted(0.7)), 774), masked in any::<bool>(),
        at in any::<prop::sample::Index>(),
        hidden in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e30]),
    ) {
        let elements = rows * n_tokens;
        let mut policy: Vec<f64> = seed[..elements].iter().map(|token| token.0).collect();
        let reference: Vec<f64> = seed[..elements].iter().map(|token| token.1).collect();
        let mut mask: Vec<u8> = seed[..elements].iter().map(|token| token.2.into()).collect();
        if masked && elements > 0 {
            let at = at.index(elements);
            (policy[at], mask[at]) = (hidden, 0);
        }
        let mask = masked.then_some(&mask[..]);
        at_every_level(|| {
            assert_kl_agrees::<f64>([&policy, &reference], mask, rows, 1e-14)?;
            assert_kl_agrees::<f32>([&policy, &reference], mask, rows, 2e-6)
        })?;
    }

    /// Outside of the polynomial's range, the baseline computes the sum.
    #[test]
    fn extreme_tokens_count_as_they_did(
        n_tokens in 1usize..140, at in any::<prop::sample::Index>(),
        extreme in prop::sample::select(vec![-1e4, -701.0, -88.0, 88.0, 300.0, f64::INFINITY]),
    ) {
        let mut policy = vec![-1.0; n_tokens];
        let reference = vec![-1.5; n_tokens];
        policy[at.index(n_tokens)] = -1.5 - extreme;
        at_every_level(|| {
            assert_kl_agrees::<f64>([&policy, &reference], None, 1, 1e-14)?;
            assert_kl_agrees::<f32>([&policy, &reference], None, 1, 2e-6)
        })?;
    }

    #[test]
    fn a_vector_pass_over_groups_agrees_with_single_rewards_at_every_level(
        group_size in 1usize..36, groups in 0usize..4, seed in vec(-100.0..100.0, 105), constant in any::<bool>(),
    ) {
        let rewards: Vec<f64> = match constant {
            true => vec![3.25; groups * group_size],
            false => seed.iter().copied().cycle().take(groups * group_size).collect(),
        };
        let single: Vec<f32> = rewards.iter().map(|&reward| reward as f32).collect();
        at_every_level(|| {
            let (mut before, mut after) = (vec![9.0; rewards.len()], vec![9.0; rewards.len()]);
            let finite = group_advantages::baseline::normalise::<ByRows, f64>(&rewards, group_size, 1e-8, &mut before);
            prop_assert!(finite);
            let finite = group_advantages::optimized::normalise::<ByRows, f64>(&rewards, group_size, 1e-8, &mut after);
            prop_assert!(finite);
            assert_near(&before, &after, 1e-11)?;
            let (mut before, mut after) = (vec![9.0; rewards.len()], vec![9.0; rewards.len()]);
            group_advantages::baseline::normalise::<ByRows, f32>(&single, group_size, 1e-8, &mut before);
            group_advantages::optimized::normalise::<ByRows, f32>(&single, group_size, 1e-8, &mut after);
            assert_near(&before, &after, 1e-6)
        })?;
    }

    #[test]
    fn a_reward_that_is_not_finite_is_seen_by_the_vector_pass(
        group_size in 1usize..36, groups in 1usize..4, at in any::<prop::sample::Index>(),
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ) {
        let mut rewards = vec![1.0; groups * group_size];
        rewards[at.index(groups * group_size)] = bad;
        let mut advantages = rewards.clone();
        at_every_level(|| {
            prop_assert!(!group_advantages::optimized::normalise::<ByRows, f64>(
                &rewards, group_size, 1e-8, &mut advantages,
            ));
            Ok(())
        })?;
    }

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
        let mask: Vec<u8> = policy.iter().map(|&p| u8::from(p > -3.0)).collect();
        for mask in [None, Some(&mask[..])] {
            prop_assert_eq!(
                Ops::<AllBefore>::compute_token_kl(policy, reference, mask, rows).unwrap(),
                Ops::<Shared>::compute_token_kl(policy, reference, mask, rows).unwrap()
            );
        }
        let rewards = &seed[..rows * 4];
        prop_assert_eq!(
            Ops::<AllBefore>::compute_group_advantages(rewards, 4, 1e-8).unwrap(),
            Ops::<Shared>::compute_group_advantages(rewards, 4, 1e-8).unwrap()
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
    let mask = [255, 0];
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
        (kl(&four, &four, Some(&[1]), 2), "mask"),
        (kl(&four, &four, None, 3), "log_probs_policy"),
        (groups(&four, 0, 1e-8), "group_size"),
        (groups(&four, 3, 1e-8), "group_size"),
        (groups(&four, 2, 0.0), "epsilon"),
        (groups(&four, 2, 1e-310), "epsilon"),
        (groups(&[0.0, f64::NAN], 2, 1e-8), "rewards"),
        (groups(&[f64::MAX, f64::MIN], 2, 1e-8), "rewards"),
    ] {
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
}
