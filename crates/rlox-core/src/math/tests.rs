//! The error bounds of these functions against libm, with every instruction set that this processor
//! has.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::Real;
use crate::simd::at_every_level;

kernel! {
    fn tanh(values: &mut [f32]) = tanh_body;
}

kernel! {
    fn exp_lanes(values: &mut [f64]) = exp_lanes_body;
}

kernel! {
    fn exp_rests<T: Real>(values: &mut [T]) = exp_rests_body;
}

#[inline(always)]
fn tanh_body<I: Instructions>(values: &mut [f32]) {
    for value in values {
        *value = tanh_one::<I>(*value);
    }
}

#[inline(always)]
fn exp_lanes_body<I: Instructions>(values: &mut [f64]) {
    for value in values {
        *value = value.exp_lane::<I>();
    }
}

#[inline(always)]
fn exp_rests_body<I: Instructions, T: Real>(values: &mut [T]) {
    for value in values {
        *value = value.exp_rest::<I>();
    }
}

/// Half a million floats between `from` and `to`, evenly spaced in their bits.
fn singles(from: f32, to: f32) -> Vec<f32> {
    let stride = ((to.to_bits() - from.to_bits()) / 500_000).max(1) as usize;
    let bits = (from.to_bits()..=to.to_bits()).step_by(stride);
    bits.map(f32::from_bits).collect()
}

fn doubles(from: f64, to: f64) -> Vec<f64> {
    let stride = ((to.to_bits() - from.to_bits()) / 500_000).max(1) as usize;
    let bits = (from.to_bits()..=to.to_bits()).step_by(stride);
    bits.map(f64::from_bits).collect()
}

/// The largest error of `f`, in units in the last place of the result, or of `floor` where the result
/// is smaller.
fn worst(f: fn(&mut [f32]), exact: fn(f64) -> f64, from: f32, to: f32, floor: f64) -> f64 {
    let x = singles(from, to);
    let mut y = x.clone();
    f(&mut y);
    let ulps = |(&x, &y): (&f32, &f32)| {
        let expected = exact(f64::from(x));
        let unit = (expected.abs().max(floor) as f32).max(f32::MIN_POSITIVE);
        (f64::from(y) - expected).abs() / f64::from(unit.next_up() - unit)
    };
    x.iter().zip(&y).map(ulps).fold(0.0, f64::max)
}

#[test]
fn tanh_exp_and_ln_keep_their_bounds_over_their_range() {
    at_every_level(|| {
        assert!(worst(tanh, f64::tanh, 1e-30, 20.0, 0.0) <= 6.0);
        assert!(worst(tanh, f64::tanh, -1e-30, -20.0, 0.0) <= 6.0);
        assert!(worst(exp, f64::exp, 1e-30, 88.7, 0.0) <= 2.0);
        assert!(worst(exp, f64::exp, -1e-30, -87.3, 0.0) <= 2.0);
        assert!(worst(ln, f64::ln, f32::MIN_POSITIVE, f32::MAX, 0.0) <= 2.0);
        assert!(worst(ln, f64::ln, 0.5, 2.0, 1.0) <= 2.0);
        Ok::<(), ()>(())
    })
    .unwrap();
}

#[test]
fn the_exponential_in_f64_keeps_its_bound_over_its_range() {
    at_every_level(|| {
        for (from, to) in [(1e-300, 709.78), (-1e-300, -708.0)] {
            let x = doubles(from, to);
            let mut y = x.clone();
            exp_lanes(&mut y);
            for (x, y) in x.iter().zip(&y) {
                let exact = x.exp();
                assert!(
                    (y - exact).abs() <= 2.0 * (exact.next_up() - exact),
                    "exp({x}) = {exact}, not {y}"
                );
            }
        }
        Ok::<(), ()>(())
    })
    .unwrap();
}

/// exp(x) - 1 - x: its series where it would cancel.
fn exp_rest(x: f64) -> f64 {
    if x.abs() > 1.0 {
        return x.exp_m1() - x;
    }
    let terms = (2..25).scan(x, |term, k| {
        *term *= x / f64::from(k);
        Some(*term)
    });
    terms.collect::<Vec<_>>().iter().rev().sum()
}

#[test]
fn the_rest_of_the_exponential_does_not_cancel() {
    at_every_level(|| {
        for (from, to) in [(1e-15, 87.0), (-1e-15, -87.0)] {
            let x = singles(from, to);
            let mut y = x.clone();
            exp_rests(&mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let error = f64::from(y) / exp_rest(f64::from(x)) - 1.0;
                assert!(error.abs() <= 1e-6, "{x}: {y}, {error}");
            }
        }
        for (from, to) in [(1e-100, 700.0), (-1e-100, -700.0)] {
            let x = doubles(from, to);
            let mut y = x.clone();
            exp_rests(&mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let error = y / exp_rest(x) - 1.0;
                assert!(error.abs() <= 4e-15, "{x}: {y}, {error}");
            }
        }
        let mut zeros = [0.0; 17];
        exp_rests(&mut zeros);
        assert_eq!(zeros, [0.0; 17]);
        Ok::<(), ()>(())
    })
    .unwrap();
}

#[test]
fn tanh_and_exp_at_their_ends() {
    at_every_level(|| {
        // Seventeen: a whole vector and one more.
        let mut y = vec![f32::INFINITY; 17];
        y[16] = f32::NEG_INFINITY;
        tanh(&mut y);
        assert_eq!((y[0], y[16]), (1.0, -1.0));
        let mut y = vec![f32::NAN; 17];
        tanh(&mut y);
        assert!(y.iter().all(|y| y.is_nan()));
        let mut y = vec![f32::NEG_INFINITY; 17];
        y[16] = f32::INFINITY;
        exp(&mut y);
        assert_eq!((y[0], y[16]), (0.0, f32::INFINITY));
        let mut y = vec![f32::NAN; 17];
        exp(&mut y);
        assert!(y.iter().all(|y| y.is_nan()));
        let mut y = vec![0.0, 1.0];
        exp(&mut y);
        assert_eq!(y[0], 1.0);
        let mut y = [f64::NEG_INFINITY, -708.1, 0.0, 710.0, f64::INFINITY];
        exp_lanes(&mut y);
        assert_eq!(y, [0.0, 0.0, 1.0, f64::INFINITY, f64::INFINITY]);
        let mut y = vec![f64::NAN; 17];
        exp_lanes(&mut y);
        assert!(y.iter().all(|y| y.is_nan()));
        Ok::<(), ()>(())
    })
    .unwrap();
}
