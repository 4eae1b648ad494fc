//! What must hold of the advantages with every wiring.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::W;
use crate::simd::at_every_level;
use crate::training::gae::*;

type Steps = Vec<(f64, f64, bool)>;

fn columns(steps: &Steps) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    (
        steps.iter().map(|step| step.0).collect(),
        steps.iter().map(|step| step.1).collect(),
        steps
            .iter()
            .map(|step| f64::from(u8::from(step.2)))
            .collect(),
    )
}

fn steps(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Steps> {
    vec((-10.0..10.0, -10.0..10.0, prop::bool::weighted(0.2)), len)
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
            "{found} {expected}"
        );
    }
}

/// Any sequence whose steps end an episode rarely, often, never or always.
fn any_steps(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Steps> {
    let len = len.into();
    prop::sample::select(vec![0.02, 0.3, 0.0, 1.0]).prop_flat_map(move |ended| {
        let step = (-10.0..10.0, -10.0..10.0, prop::bool::weighted(ended));
        vec(step, len.clone())
    })
}

/// What a twin writes: advantages and returns of `n` steps.
fn written<T: Real>(n: usize, twin: impl Fn(&mut [T], &mut [T])) -> Vec<f64> {
    let (mut advantages, mut returns) = (vec![T::one(); n], vec![T::one(); n]);
    twin(&mut advantages, &mut returns);
    advantages.into_iter().chain(returns).map(T::into).collect()
}

/// `tolerance` is relative above 1, absolute below.
fn assert_near(before: &[f64], after: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
    for (before, after) in before.iter().zip(after) {
        let near = (after - before).abs() <= tolerance * before.abs().max(1.0);
        prop_assert!(near, "{before} {after}");
    }
    Ok(())
}

fn assert_blocks_agree<T: Real>(
    columns: [&[f64]; 3],
    scalars: [f64; 3],
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let [r, v, d] = columns.map(in_precision::<T>);
    let [last, gamma, lambda] = scalars.map(T::from_f64);
    let before = written(r.len(), |advantages: &mut [T], returns| {
        blocks::baseline::advantages_and_returns::<W, T>(
            &r, &v, &d, last, gamma, lambda, advantages, returns,
        );
    });
    let after = written(r.len(), |advantages: &mut [T], returns| {
        blocks::optimized::advantages_and_returns(
            &r, &v, &d, last, gamma, lambda, advantages, returns,
        );
    });
    assert_near(&before, &after, tolerance)
}

fn assert_environments_agree<T: Real>(
    columns: [&[f64]; 4],
    discounts: [f64; 2],
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let [r, v, d, lasts] = columns.map(in_precision::<T>);
    let [gamma, lambda] = discounts.map(T::from_f64);
    let before = written(r.len(), |advantages: &mut [T], returns| {
        step_major::baseline::advantages_and_returns(
            &r, &v, &d, &lasts, gamma, lambda, advantages, returns,
        );
    });
    let after = written(r.len(), |advantages: &mut [T], returns| {
        step_major::optimized::advantages_and_returns(
            &r, &v, &d, &lasts, gamma, lambda, advantages, returns,
        );
    });
    assert_near(&before, &after, tolerance)
}

fn in_precision<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::from_f64(value)).collect()
}

proptest! {
    #[test]
    fn blocks_of_steps_agree_with_single_steps_at_every_level(
        steps in any_steps(0..70), last in -10.0..10.0, gamma in 0.0..=1.0, lambda in 0.0..=1.0,
    ) {
        let (rewards, values, dones) = columns(&steps);
        let columns = [&rewards[..], &values, &dones];
        at_every_level(|| {
            assert_blocks_agree::<f64>(columns, [last, gamma, lambda], 1e-12)?;
            assert_blocks_agree::<f32>(columns, [last, gamma, lambda], 5e-4)
        })?;
    }

    #[test]
    fn vectors_of_environments_agree_with_single_ones_at_every_level(
        n_envs in 1usize..40, n_steps in 0usize..12, seed in any_steps(440),
        gamma in 0.0..=1.0, lambda in 0.0..=1.0,
    ) {
        let (rewards, values, dones) = columns(&seed);
        let n = n_envs * n_steps;
        let columns = [&rewards[..n], &values[..n], &dones[..n], &values[440 - n_envs..]];
        at_every_level(|| {
            assert_environments_agree::<f64>(columns, [gamma, lambda], 5e-13)?;
            assert_environments_agree::<f32>(columns, [gamma, lambda], 3e-4)
        })?;
    }

    #[test]
    fn blocks_let_no_number_that_is_not_finite_go_unseen(
        steps in any_steps(1..70), at in any::<prop::sample::Index>(), which in 0usize..3,
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        gamma in 0.0..=1.0, lambda in 0.0..=1.0,
    ) {
        let (mut rewards, mut values, mut dones) = columns(&steps);
        let at = at.index(steps.len());
        [&mut rewards, &mut values, &mut dones][which][at] = bad;
        let (mut advantages, mut returns) = (vec![9.0; steps.len()], vec![9.0; steps.len()]);
        at_every_level(|| {
            blocks::optimized::advantages_and_returns(
                &rewards, &values, &dones, 0.5, gamma, lambda, &mut advantages, &mut returns,
            );
            prop_assert!(!advantages[0].is_finite());
            step_major::optimized::advantages_and_returns(
                &rewards, &values, &dones, &[0.5], gamma, lambda, &mut advantages, &mut returns,
            );
            prop_assert!(!advantages[0].is_finite());
            Ok(())
        })?;
    }

    #[test]
    fn lambda_zero_is_the_td_error(steps in steps(0..40), last in -10.0..10.0, gamma in 0.0..=1.0) {
        let (rewards, values, dones) = columns(&steps);
        let (advantages, _) = compute_gae::<W, _>(&rewards, &values, &dones, last, gamma, 0.0).unwrap();
        let expected: Vec<f64> = (0..steps.len())
            .map(|t| {
                let next = values.get(t + 1).copied().unwrap_or(last);
                rewards[t] + gamma * next * (1.0 - dones[t]) - values[t]
            })
            .collect();
        assert_close(&advantages, &expected);
    }

    #[test]
    fn lambda_one_returns_are_monte_carlo(steps in steps(0..40), last in -10.0..10.0, gamma in 0.0..=1.0) {
        let (rewards, values, dones) = columns(&steps);
        let (_, returns) = compute_gae::<W, _>(&rewards, &values, &dones, last, gamma, 1.0).unwrap();
        let mut expected = vec![0.0; steps.len()];
        let mut tail = last;
        for t in (0..steps.len()).rev() {
            tail = rewards[t] + gamma * (1.0 - dones[t]) * tail;
            expected[t] = tail;
        }
        assert_close(&returns, &expected);
    }

    #[test]
    fn nothing_after_a_done_reaches_before_it(
        before in steps(1..20), after in steps(0..20), last in -10.0..10.0, gamma in 0.0..=1.0, lambda in 0.0..=1.0,
    ) {
        let mut before = before;
        before.last_mut().unwrap().2 = true;
        let advantages = |steps: &Steps, last| {
            let (rewards, values, dones) = columns(steps);
            compute_gae::<W, _>(&rewards, &values, &dones, last, gamma, lambda).unwrap().0
        };
        let other: Steps = after.iter().map(|&(reward, value, done)| (-reward, value + 1.0, done)).collect();
        let joined = advantages(&[before.clone(), after].concat(), last);
        let with_other = advantages(&[before.clone(), other].concat(), last + 1.0);
        prop_assert_eq!(&joined[..before.len()], &with_other[..before.len()]);
        // The rounding depends on where blocks begin, which depends on the length.
        assert_close(&advantages(&before, 0.0), &joined[..before.len()]);
    }

    #[test]
    fn batched_equals_unbatched_env_major_to_the_bit(
        n_steps in 0usize..30, n_envs in 1usize..9, seed in steps(240), gamma in 0.0..=1.0, lambda in 0.0..=1.0,
    ) {
        let total = n_steps * n_envs;
        let (rewards, values, dones) = columns(&seed[..total].to_vec());
        let last_values: Vec<f64> = seed[..n_envs].iter().map(|step| step.0).collect();
        let transposed = |env_major: &[f64]| -> Vec<f64> {
            (0..total).map(|i| env_major[(i % n_envs) * n_steps + i / n_envs]).collect()
        };

        let (mut advantages, mut returns) = (Vec::new(), Vec::new());
        for (env, &last_value) in last_values.iter().enumerate() {
            let sequence = env * n_steps..(env + 1) * n_steps;
            let (a, r) = compute_gae::<W, _>(
                &rewards[sequence.clone()], &values[sequence.clone()], &dones[sequence],
                last_value, gamma, lambda,
            ).unwrap();
            advantages.extend(a);
            returns.extend(r);
        }
        let env_major = compute_gae_batched::<W, _>(
            &rewards, &values, &dones, &last_values, gamma, lambda, Layout::EnvMajor,
        ).unwrap();
        let step_major = compute_gae_batched::<W, _>(
            &transposed(&rewards), &transposed(&values), &transposed(&dones), &last_values,
            gamma, lambda, Layout::StepMajor,
        ).unwrap();
        assert_close(&step_major.0, &transposed(&advantages));
        assert_close(&step_major.1, &transposed(&returns));
        prop_assert_eq!(env_major, (advantages, returns));
    }

    #[test]
    fn a_non_finite_input_is_named_wherever_it_hides(
        steps in steps(1..30), at in any::<prop::sample::Index>(), which in 0usize..3,
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        gamma in 0.0..=1.0, lambda in 0.0..=1.0,
    ) {
        let (mut rewards, mut values, mut dones) = columns(&steps);
        let at = at.index(steps.len());
        let name = ["rewards", "values", "dones"][which];
        [&mut rewards, &mut values, &mut dones][which][at] = bad;
        let error = compute_gae::<W, _>(&rewards, &values, &dones, 0.5, gamma, lambda).unwrap_err();
        prop_assert!(error.to_string().starts_with(&format!("{name}: ")), "{error}");
        let error = compute_gae_batched::<W, _>(
            &rewards, &values, &dones, &[0.5], gamma, lambda, Layout::StepMajor,
        ).unwrap_err();
        prop_assert!(error.to_string().starts_with(&format!("{name}: ")), "{error}");
    }
}

#[test]
fn parallel_and_serial_environments_agree() {
    let (n_envs, n_steps) = (4, 20_000);
    let rewards: Vec<f64> = (0..n_envs * n_steps).map(|i| (i % 17) as f64).collect();
    let values: Vec<f64> = rewards.iter().map(|r| r * 0.5).collect();
    let dones: Vec<f64> = rewards
        .iter()
        .map(|r| f64::from(u8::from(*r == 3.0)))
        .collect();
    let last_values = [1.0, 2.0, 3.0, 4.0];
    let (advantages, _) = compute_gae_batched::<W, _>(
        &rewards,
        &values,
        &dones,
        &last_values,
        0.99,
        0.95,
        Layout::EnvMajor,
    )
    .unwrap();
    let (last, _) = compute_gae::<W, _>(
        &rewards[3 * n_steps..],
        &values[3 * n_steps..],
        &dones[3 * n_steps..],
        4.0,
        0.99,
        0.95,
    )
    .unwrap();
    assert_eq!(advantages[3 * n_steps..], last);
}

#[test]
fn f32_inputs_give_f32_results() {
    let (advantages, returns) =
        compute_gae::<W, _>(&[1.0f32, 1.0], &[0.5, 0.5], &[0.0, 1.0], 9.0, 1.0, 1.0).unwrap();
    assert_eq!((advantages, returns), (vec![1.5f32, 0.5], vec![2.0, 1.0]));
}

#[test]
fn bad_arguments_are_named() {
    let two = [0.0f64; 2];
    for (error, name) in [
        (
            compute_gae::<W, _>(&two, &two[..1], &two, 0.0, 0.9, 0.9),
            "values",
        ),
        (
            compute_gae::<W, _>(&two, &two, &two[..1], 0.0, 0.9, 0.9),
            "dones",
        ),
        (
            compute_gae::<W, _>(&two, &two, &two, 0.0, 1.1, 0.9),
            "gamma",
        ),
        (
            compute_gae::<W, _>(&two, &two, &two, 0.0, 0.9, f64::NAN),
            "gae_lambda",
        ),
        (
            compute_gae::<W, _>(&two, &two, &two, f64::NAN, 0.9, 0.9),
            "last_value",
        ),
        (
            compute_gae_batched::<W, _>(&two, &two, &two, &[0.0; 3], 0.9, 0.9, Layout::EnvMajor),
            "last_values",
        ),
        (
            compute_gae_batched::<W, _>(&two, &two, &two, &[], 0.9, 0.9, Layout::StepMajor),
            "last_values",
        ),
    ] {
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
}

#[test]
fn overflow_is_an_error() {
    let error = compute_gae::<W, _>(&[f64::MAX, f64::MAX], &[0.0; 2], &[0.0; 2], 0.0, 1.0, 1.0);
    assert!(error.unwrap_err().to_string().contains("overflows"));
}
