//! What must hold of V-trace, whichever inner loop is in use.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::training::gae::compute_gae;

fn assert_close(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
            "{found} {expected}"
        );
    }
}

proptest! {
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
            compute_vtrace(&on_policy, &rewards, &values, &dones, last, gamma, 1.0, 1.0).unwrap();
        let (advantages, returns) = compute_gae(&rewards, &values, &dones, last, gamma, 1.0).unwrap();
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
            compute_vtrace(&log_rhos, &rewards, &values, &dones, last, 0.9, 0.0, 1.0).unwrap();
        assert_close(&vs, &values);
        prop_assert!(pg_advantages.iter().all(|&a| a == 0.0));
    }
}

#[test]
fn two_steps_by_hand() {
    // rho = (2, 0.5), c = (1, 0.5); delta_1 = 0.5 (1 + 0.5 * 4 - 2) = 0.5, vs_1 = 2.5;
    // delta_0 = 2 (1 + 0.5 * 2 - 1) = 2, vs_0 = 1 + 2 + 0.5 * 1 * 0.5 = 3.25.
    let log_rhos = [4.0f64.ln(), 0.5f64.ln()];
    let (vs, pg_advantages) = compute_vtrace(
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
    let (vs, pg_advantages) = compute_vtrace(
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

#[test]
fn bad_arguments_are_named() {
    let two = [0.0f64; 2];
    let nan = [0.0, f64::NAN];
    for (error, name) in [
        (
            compute_vtrace(&two[..1], &two, &two, &two, 0.0, 0.9, 1.0, 1.0),
            "log_rhos",
        ),
        (
            compute_vtrace(&two, &two, &two[..1], &two, 0.0, 0.9, 1.0, 1.0),
            "values",
        ),
        (
            compute_vtrace(&two, &two, &two, &two[..1], 0.0, 0.9, 1.0, 1.0),
            "dones",
        ),
        (
            compute_vtrace(&two, &two, &two, &two, 0.0, -0.1, 1.0, 1.0),
            "gamma",
        ),
        (
            compute_vtrace(&two, &two, &two, &two, 0.0, 0.9, -1.0, 1.0),
            "rho_bar",
        ),
        (
            compute_vtrace(&two, &two, &two, &two, 0.0, 0.9, 1.0, f64::NAN),
            "c_bar",
        ),
        (
            compute_vtrace(&nan, &two, &two, &two, 0.0, 0.9, 1.0, 1.0),
            "log_rhos",
        ),
        (
            compute_vtrace(&two, &nan, &two, &two, 0.0, 0.9, 1.0, 1.0),
            "rewards",
        ),
        (
            compute_vtrace(&two, &two, &two, &two, f64::NAN, 0.9, 1.0, 1.0),
            "last_value",
        ),
    ] {
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
}
