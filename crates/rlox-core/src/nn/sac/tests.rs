//! What can be tested without torch. Tests in Python compare the gradients with autograd's.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::nn::Activation;

/// The action and log pi(a|s) by the paper's formulas, in float64.
fn oracle(mean: f64, log_std: f64, noise: f64) -> (f64, f64) {
    let log_std = log_std.clamp(-20.0, 2.0);
    let u = mean + log_std.exp() * noise;
    let density = -0.5 * noise * noise - log_std - 0.5 * (2.0 * std::f64::consts::PI).ln();
    // 1 - tanh² = 1 / cosh²
    (u.tanh(), density + 2.0 * u.cosh().ln())
}

proptest! {
    #[test]
    fn draws_and_their_densities_follow_the_formula(
        mean in -5.0f32..5.0,
        log_std in -25.0f32..3.0,
        noise in -4.0f32..4.0,
    ) {
        let (mut actions, mut log_probs) = ([7.0f32, 0.0], [0.0f32]);
        squashed::sample(&[mean, log_std], &[noise], 1, &mut actions, 2, &mut log_probs);
        let (action, log_prob) = oracle(mean.into(), log_std.into(), noise.into());
        prop_assert_eq!(actions[0], 7.0, "only the last element of a row is written");
        prop_assert!((f64::from(actions[1]) - action).abs() < 1e-6);
        prop_assert!((f64::from(log_probs[0]) - log_prob).abs() < 1e-5 * (1.0 + log_prob.abs()));
    }

    #[test]
    fn the_actors_gradient_is_the_slope_of_its_loss(
        mean in -2.0f32..2.0,
        log_std in -3.0f32..1.9,
        noise in -2.0f32..2.0,
        slope in -3.0f32..3.0,
        alpha in 0.0f32..2.0,
    ) {
        let (mut actions, mut log_probs) = ([0.0f32], [0.0f32]);
        let heads = [mean, log_std];
        squashed::sample(&heads, &[noise], 1, &mut actions, 1, &mut log_probs);
        let mut grad = [0.0f32; 2];
        squashed::grad(&heads, &[noise], 1, &actions, 1, &[slope], alpha, 0.5, &mut grad);
        // Half of alpha log pi - q, with q linear in the action.
        let loss = |mean: f64, log_std: f64| {
            let (action, log_prob) = oracle(mean, log_std, noise.into());
            0.5 * (f64::from(alpha) * log_prob - f64::from(slope) * action)
        };
        let (mean, log_std) = (f64::from(mean), f64::from(log_std));
        let h = 1e-5;
        let expected = [
            (loss(mean + h, log_std) - loss(mean - h, log_std)) / (2.0 * h),
            (loss(mean, log_std + h) - loss(mean, log_std - h)) / (2.0 * h),
        ];
        for (found, expected) in grad.iter().zip(expected) {
            prop_assert!((f64::from(*found) - expected).abs() < 2e-4 * (1.0 + expected.abs()));
        }
    }
}

#[test]
fn beyond_the_bounds_of_the_deviation_there_is_no_slope() {
    for log_std in [-20.5, 2.5] {
        let mut grad = [0.0f32; 2];
        squashed::grad(
            &[0.3, log_std],
            &[1.0],
            1,
            &[0.2],
            1,
            &[1.0],
            0.5,
            1.0,
            &mut grad,
        );
        assert_ne!(grad[0], 0.0);
        assert_eq!(grad[1], 0.0);
    }
}

#[test]
fn networks_that_do_not_fit_together_are_refused() {
    let mlp = |widths: &[usize]| Mlp::new(widths, Activation::Relu).unwrap();
    let critic = || mlp(&[5, 4, 1]);
    assert!(Sac::new(mlp(&[3, 4, 4]), [critic(), critic()]).is_ok());
    assert!(Sac::new(mlp(&[3, 4, 3]), [critic(), critic()]).is_err());
    assert!(Sac::new(mlp(&[2, 4, 4]), [critic(), critic()]).is_err());
    assert!(Sac::new(mlp(&[3, 4, 4]), [critic(), mlp(&[5, 4, 2])]).is_err());
}

#[test]
fn a_diverged_critic_is_not_passed_over() {
    assert_eq!(min(1.0, 2.0), 1.0);
    assert!(min(f32::NAN, 2.0).is_nan());
    assert!(min(2.0, f32::NAN).is_nan());
}

/// While a thread of the pool waits for the other half, Rayon may run any other work on it.
#[test]
fn what_else_the_pool_does_meanwhile_keeps_denormals() {
    let kept = || black_box(f32::MIN_POSITIVE) * black_box(0.5) > 0.0;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let half = || assert_eq!((0..1_000).map(black_box).sum::<u32>(), 499_500);
            while !done.load(Relaxed) {
                threads::in_pool(|| both(true, half, || (0..9).for_each(|_| half())));
            }
        });
        let all_keep = |_| rayon::broadcast(|_| kept()).into_iter().all(|kept| kept);
        let found = (0..300).all(all_keep);
        done.store(true, Relaxed);
        assert!(found);
    });
}

#[test]
fn an_update_that_panics_ends_and_so_does_the_thread_that_was_kept_awake_for_it() {
    let panics = || threads::in_pool(|| both(true, || (), || panic!("planned")));
    assert!(thread::spawn(panics).join().is_err());
    assert_eq!(threads::in_pool(|| 7), 7);
}
