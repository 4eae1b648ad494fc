//! What must hold of V-trace with every wiring.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::W;
use crate::simd::at_every_level;
use crate::training::gae::compute_gae;
use crate::training::vtrace::*;

fn assert_close(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
            "{found} {expected}"
        );
    }
}

/// Checks that both twins of P18 write the same, in precision T. `tolerance` is relative above 1, absolute
/// below.
fn assert_agree<T: Real>(
    columns: [&[f64]; 4],
    scalars: [f64; 4],
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let [log_rhos, rewards, values, dones] =
        columns.map(|column| column.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>());
    let [last_value, gamma, rho_bar, c_bar] = scalars.map(T::from_f64);
    let [before, after] = [
        blocks::baseline::targets::<W, T>,
        blocks::optimized::targets::<W, T>,
    ]
    .map(|twin| {
        let (mut vs, mut advantages) = (rewards.clone(), rewards.clone());
        twin(
            &log_rhos,
            &rewards,
            &values,
            &dones,
            last_value,
            gamma,
            rho_bar,
            c_bar,
            &mut vs,
            &mut advantages,
        );
        [vs, advantages].concat()
    });
    for (&before, &after) in before.iter().zip(&after) {
        let (before, after): (f64, f64) = (before.into(), after.into());
        let near = (after - before).abs() <= tolerance * before.abs().max(1.0);
        prop_assert!(near, "{before} {after}");
    }
    Ok(())
}

proptest! {
    /// Lengths around that of a block, and all weights and bars that are allowed.
    #[test]
    fn blocks_agree_with_single_steps_at_every_level(
        n in prop_oneof![0usize..20, 250usize..262, 511usize..515], seed in vec((-3.0..3.0, -10.0..10.0, -10.0..10.0), 515),
        ended in prop::sample::select(vec![0, 1, 5, 1000]), extreme in any::<prop::sample::Index>(),
        weight in prop::sample::select(vec![0.5, f64::NEG_INFINITY, -800.0, 800.0]),
        last in -10.0..10.0, gamma in 0.0..=1.0,
        rho_bar in prop::sample::select(vec![0.0, 0.5, 1.0, 3.0]), c_bar in prop::sample::select(vec![0.0, 0.5, 1.0]),
    ) {
        let column = |f: fn(&(f64, f64, f64)) -> f64| seed[..n].iter().map(f).collect::<Vec<_>>();
        let (mut log_rhos, rewards, values) = (column(|s| s.0), column(|s| s.1), column(|s| s.2));
        let dones: Vec<f64> = (0..n).map(|t| f64::from(u8::from(ended > 0 && t % ended == 0))).collect();
        if n > 0 {
            log_rhos[extreme.index(n)] = weight;
        }
        let columns = [&log_rhos[..], &rewards, &values, &dones];
        at_every_level(|| {
            assert_agree::<f64>(columns, [last, gamma, rho_bar, c_bar], 1e-12)?;
            assert_agree::<f32>(columns, [last, gamma, rho_bar, c_bar], 5e-4)
        })?;
    }

    #[test]
    fn blocks_let_no_number_that_is_not_finite_go_unseen(
        n in prop_oneof![1usize..20, 255usize..260], at in any::<prop::sample::Index>(), which in 0usize..3,
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]), gamma in 0.0..=1.0,
    ) {
        let mut columns = [vec![1.0; n], vec![2.0; n], vec![0.0; n]];
        columns[which][at.index(n)] = bad;
        let [rewards, values, dones] = columns;
        let (mut vs, mut advantages) = (vec![9.0; n], vec![9.0; n]);
        at_every_level(|| {
            blocks::optimized::targets::<W, f64>(
                &vec![0.25; n], &rewards, &values, &dones, 0.5, gamma, 1.0, 1.0, &mut vs,
                &mut advantages,
            );
            prop_assert!(!vs[0].is_finite());
            Ok(())
        })?;
    }

    /// On-policy and unclipped, V-trace is the n-step Bellman target (the paper's remark 1), which
    /// is the return of GAE with lambda = 1.
    #[test]
    fn on_policy_targets_are_the_n_step_returns(
        steps in vec((-10.0..10.0, -10.0..10.0, prop::bool::weighted(0.2)), 0..40),
        last in -10.0..10.0, gamma in 0.0..=1.0,
    ) {
        let rewards: Vec<f64> = steps.iter().map(|step| step.0).collect();
        let values: Vec<f64> = steps.iter().map(|step| step.1).collect();
        let dones: Vec<f64> = steps.iter().map(|step| f64::from(u8::from(step.2))).collect();
        let on_policy = vec![0.0; steps.len()];
        let (vs, pg_advantages) =
            compute_vtrace::<W, _>(&on_policy, &rewards, &values, &dones, last, gamma, 1.0, 1.0).unwrap();
        let (advantages, returns) = compute_gae::<W, _>(&rewards, &values, &dones, last, gamma, 1.0).unwrap();
        assert_close(&vs, &returns);
        assert_close(&pg_advantages, &advantages);
    }

    #[test]
    fn rho_bar_zero_keeps_the_values(
        steps in vec((-3.0..3.0, -10.0..10.0, -10.0..10.0), 0..20), last in -10.0..10.0,
    ) {
        let column = |f: fn(&(f64, f64, f64)) -> f64| steps.iter().map(f).collect::<Vec<_>>();
        let (log_rhos, rewards, values) = (column(|s| s.0), column(|s| s.1), column(|s| s.2));
        let dones = vec![0.0; steps.len()];
        let (vs, pg_advantages) =
            compute_vtrace::<W, _>(&log_rhos, &rewards, &values, &dones, last, 0.9, 0.0, 1.0).unwrap();
        assert_close(&vs, &values);
        prop_assert!(pg_advantages.iter().all(|&a| a == 0.0));
    }
}

#[test]
fn two_steps_by_hand() {
    // rho = (2, 0.5), c = (1, 0.5); delta_1 = 0.5 (1 + 0.5 * 4 - 2) = 0.5, vs_1 = 2.5;
    // delta_0 = 2 (1 + 0.5 * 2 - 1) = 2, vs_0 = 1 + 2 + 0.5 * 1 * 0.5 = 3.25.
    let log_rhos = [4.0f64.ln(), 0.5f64.ln()];
    let (vs, pg_advantages) = compute_vtrace::<W, _>(
        &log_rhos,
        &[1.0, 1.0],
        &[1.0, 2.0],
        &[0.0; 2],
        4.0,
        0.5,
        2.0,
        1.0,
    )
    .unwrap();
    assert_close(&vs, &[3.25, 2.5]);
    assert_close(&pg_advantages, &[2.0 * (1.0 + 0.5 * 2.5 - 1.0), 0.5]);
}

#[test]
fn an_impossible_action_weighs_nothing() {
    let (vs, pg_advantages) = compute_vtrace::<W, _>(
        &[f64::NEG_INFINITY],
        &[1.0],
        &[3.0],
        &[0.0],
        7.0,
        0.9,
        1.0,
        1.0,
    )
    .unwrap();
    assert_eq!((vs, pg_advantages), (vec![3.0], vec![0.0]));
}

/// Products of the weights of several steps may overflow. Only a scan computes them.
#[test]
fn weights_without_a_bar_may_have_infinite_products() {
    let zero = [0.0; 8];
    for log_rhos in [
        [45.0, 45.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        // The target of the first step stays finite, while those between would be NaN.
        [-60.0, 0.0, 0.0, 45.0, 45.0, 0.0, 0.0, 0.0],
    ] {
        at_every_level(|| {
            let columns = [&log_rhos[..], &zero, &zero, &zero];
            assert_agree::<f32>(columns, [0.0, 1.0, 1.0, f64::INFINITY], 0.0)
        })
        .unwrap();
    }
}

#[test]
fn an_overflow_is_not_put_down_to_an_impossible_action() {
    let (two, most) = ([0.0; 2], [f64::MAX; 2]);
    let never = [0.0, f64::NEG_INFINITY];
    let error = compute_vtrace::<W, _>(&never, &most, &two, &two, f64::MAX, 1.0, 1.0, 1.0);
    let told = "rewards: is finite, but the result overflows";
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with(told), "{message}");
}

#[test]
fn a_weight_that_no_bar_clips_is_named_where_it_overflows() {
    let (two, nan) = ([0.0; 2], [0.0, f64::NAN]);
    let run = |rewards, rho_bar, c_bar| {
        let log_rhos = [0.0, 800.0];
        compute_vtrace::<W, _>(&log_rhos, rewards, &two, &two, 1.0, 0.9, rho_bar, c_bar)
            .map_err(|error| error.to_string())
    };
    for (rho_bar, c_bar) in [(f64::INFINITY, 1.0), (1.0, f64::INFINITY)] {
        let message = run(&two, rho_bar, c_bar).unwrap_err();
        assert!(
            message.starts_with("log_rhos: is 800 at index 1"),
            "{message}"
        );
        let message = run(&nan, rho_bar, c_bar).unwrap_err();
        assert!(message.starts_with("rewards: is NaN"), "{message}");
    }
    assert!(run(&two, 1.0, 1.0).is_ok());
}

#[test]
fn bad_arguments_are_named() {
    let two = [0.0f64; 2];
    let nan = [0.0, f64::NAN];
    for (error, name) in [
        (
            compute_vtrace::<W, _>(&two[..1], &two, &two, &two, 0.0, 0.9, 1.0, 1.0),
            "log_rhos",
        ),
        (
            compute_vtrace::<W, _>(&two, &two, &two[..1], &two, 0.0, 0.9, 1.0, 1.0),
            "values",
        ),
        (
            compute_vtrace::<W, _>(&two, &two, &two, &two[..1], 0.0, 0.9, 1.0, 1.0),
            "dones",
        ),
        (
            compute_vtrace::<W, _>(&two, &two, &two, &two, 0.0, -0.1, 1.0, 1.0),
            "gamma",
        ),
        (
            compute_vtrace::<W, _>(&two, &two, &two, &two, 0.0, 0.9, -1.0, 1.0),
            "rho_bar",
        ),
        (
            compute_vtrace::<W, _>(&two, &two, &two, &two, 0.0, 0.9, 1.0, f64::NAN),
            "c_bar",
        ),
        (
            compute_vtrace::<W, _>(&nan, &two, &two, &two, 0.0, 0.9, 1.0, 1.0),
            "log_rhos",
        ),
        (
            compute_vtrace::<W, _>(&two, &nan, &two, &two, 0.0, 0.9, 1.0, 1.0),
            "rewards",
        ),
        (
            compute_vtrace::<W, _>(&two, &two, &two, &two, f64::NAN, 0.9, 1.0, 1.0),
            "last_value",
        ),
    ] {
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
}
