//! The networks agree with plain formulas in float64, with every instruction set that this processor
//! has.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::gemm::{Strided, gemm};
use super::layers::Epilogue;
use super::*;
use crate::simd::at_every_level;

const NONE: Epilogue<'_> = Epilogue::None;

/// Pseudo-random numbers in [-scale, scale); `salt` is their seed.
pub(super) fn numbers(n: usize, scale: f32, salt: u64) -> Vec<f32> {
    let mut state = salt.wrapping_mul(2).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale
        })
        .collect()
}

#[test]
fn denormals_are_flushed_while_asked_for_and_not_after() {
    let halved = |x: f32| std::hint::black_box(x) * std::hint::black_box(0.5);
    let before = halved(f32::MIN_POSITIVE);
    {
        let _flush = FlushDenormals::new();
        if cfg!(all(target_arch = "x86_64", not(miri))) {
            assert_eq!(halved(f32::MIN_POSITIVE), 0.0);
        }
    }
    assert_eq!(halved(f32::MIN_POSITIVE), before);
    assert!(before > 0.0);
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn element(of: Strided<'_>, i: usize, j: usize) -> f64 {
    f64::from(of.data[i * of.row + j * of.column])
}

/// Whether all of `found` are as near to `expected` as float32 rounding allows, for sums of terms of
/// about `scale`.
fn all_close(found: &[f32], expected: &[f64], scale: f64) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(&f, e)| (f64::from(f) - e).abs() <= 2e-6 * scale)
}

#[test]
fn sizes_that_wrap_are_no_sizes() {
    let huge = 1usize << 61;
    for widths in [
        &[huge + 128, 8][..],
        &[8, huge, 1],
        &[usize::MAX, usize::MAX],
    ] {
        let error = Mlp::new(widths, Activation::Relu).unwrap_err();
        assert!(
            error.to_string().contains("does not fit into memory"),
            "{error}"
        );
    }
    // Here (m - 1) * row wraps around to 0.
    let a = Strided {
        data: &[0.0; 4],
        row: 1 << 62,
        column: 1,
    };
    let call = || gemm(5, 1, 1, a, Strided::rows(&[0.0], 1), &mut [0.0; 5], NONE);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    for precision in [Precision::Bfloat16, Precision::Bfloat16ByAmx] {
        let b = Strided::rows(&[0.0; 1024], 32);
        let call = || precision.product([33, 32, 32], a, b, &mut [0.0; 33 * 32], NONE);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    }
    // Here 15 * from_row + 16 wraps around to 15.
    let call = || transpose::transpose(16, 16, &[0.0; 16], usize::MAX / 15, &mut [0.0; 256], 16);
    assert!(std::panic::catch_unwind(call).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_become_columns_and_what_is_beyond_their_vectors_is_left(
        rows in 1usize..50, n in 1usize..50, more in 0usize..20, salt in 0u64..1000,
    ) {
        let (from_row, padded) = (n + more, rows.next_multiple_of(16));
        let (from, to_row) = (numbers(rows * from_row, 1.0, salt), padded + more);
        let mut expected = numbers(n * to_row, 1.0, salt + 1);
        let untouched = expected.clone();
        for (i, row) in expected.chunks_exact_mut(to_row).enumerate() {
            for (r, to) in row[..padded].iter_mut().enumerate() {
                *to = if r < rows { from[r * from_row + i] } else { 0.0 };
            }
        }
        at_every_level(|| {
            let mut found = untouched.clone();
            transpose::transpose(rows, n, &from, from_row, &mut found, to_row);
            prop_assert_eq!(&found, &expected);
            Ok(())
        })?;
    }

    #[test]
    fn products_agree_with_the_triple_loop(
        m in 0usize..40,
        n in 0usize..90,
        k in 0usize..300,
        padding in 0usize..3,
        transposed in any::<[bool; 2]>(),
        salt in any::<u64>(),
    ) {
        let a = numbers(m * k, 1.0, salt);
        let a = if transposed[0] { Strided::columns(&a, m) } else { Strided::rows(&a, k) };
        let b = numbers((n + padding) * (k + padding), 1.0, salt ^ 1);
        let b = if transposed[1] {
            Strided::columns(&b, k + padding)
        } else {
            Strided::rows(&b, n + padding)
        };
        let expected: Vec<f64> = (0..m * n)
            .map(|at| {
                let (i, j) = (at / n, at % n);
                (0..k)
                    .map(|p| element(a, i, p) * element(b, p, j))
                    .sum::<f64>()
            })
            .collect();
        at_every_level(|| {
            let mut c = numbers(m * n, 1.0, salt ^ 2); // is overwritten
            gemm(m, n, k, a, b, &mut c, NONE);
            prop_assert!(all_close(&c, &expected, 1.0 + (k as f64).sqrt()));
            Ok(())
        })?;
    }

    #[test]
    fn products_of_bfloat16_are_those_of_rounded_factors(
        m in 30usize..50,
        n in 30usize..140,
        k in 30usize..300,
        padding in 0usize..3,
        transposed in any::<[bool; 2]>(),
        salt in any::<u64>(),
    ) {
        let a = numbers((m + padding) * (k + padding), 1.0, salt);
        let a = if transposed[0] {
            Strided::columns(&a, m + padding)
        } else {
            Strided::rows(&a, k + padding)
        };
        let b = numbers((n + padding) * (k + padding), 1.0, salt ^ 1);
        let b = if transposed[1] {
            Strided::columns(&b, k + padding)
        } else {
            Strided::rows(&b, n + padding)
        };
        // By the definition: of the two neighbours with 8 bits of significand, the nearer one.
        let few = m.min(n).min(k) < 32;
        let factor = |of: Strided<'_>, i: usize, j: usize| {
            let x = element(of, i, j);
            if few || x == 0.0 {
                return x;
            }
            let unit = 2f64.powi(x.abs().log2().floor() as i32 - 7);
            (x / unit).round_ties_even() * unit
        };
        let expected: Vec<f64> = (0..m * n)
            .map(|at| {
                let (i, j) = (at / n, at % n);
                (0..k)
                    .map(|p| factor(a, i, p) * factor(b, p, j))
                    .sum::<f64>()
            })
            .collect();
        at_every_level(|| {
            for precision in [Precision::Bfloat16, Precision::Bfloat16ByAmx] {
                // What an earlier product leaves in packed factors must not matter.
                let nan = vec![f32::NAN; 64 * 320];
                let (x, y) = (Strided::rows(&nan, 320), Strided::rows(&nan, 64));
                precision.product([64, 64, 320], x, y, &mut vec![0.0; 64 * 64], NONE);
                let mut c = numbers(m * n + 64, 1.0, salt ^ 2); // the first m n are overwritten
                let beyond = c[m * n..].to_vec();
                precision.product([m, n, k], a, b, &mut c, NONE);
                prop_assert!(all_close(&c[..m * n], &expected, 1.0 + (k as f64).sqrt()));
                prop_assert_eq!(&c[m * n..], &beyond[..]);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_network_agrees_with_the_formulas_in_f64(
        widths in proptest::collection::vec(1usize..70, 2..5),
        tanh in any::<bool>(),
        rows in 0usize..70,
        salt in any::<u64>(),
    ) {
        let activation = if tanh { Activation::Tanh } else { Activation::Relu };
        let mlp = Mlp::new(&widths, activation).unwrap();
        let params = numbers(mlp.n_params(), 0.3, salt);
        let x = numbers(rows * widths[0], 1.0, salt ^ 1);
        let grad_out = numbers(rows * mlp.n_outputs(), 1.0, salt ^ 2);
        let oracle = Oracle::new(&widths, activation, &params, &x, &grad_out);
        at_every_level(|| {
            let mut acts = Activations::default();
            let outputs = mlp.forward(&params, &x, rows, &mut acts).to_vec();
            prop_assert!(all_close(&outputs, &oracle.outputs, oracle.scale));
            let mut grad = vec![1.0; mlp.n_params()]; // is overwritten
            mlp.backward(&params, &x, rows, &mut acts, &grad_out, &mut grad);
            let scale = oracle.scale * (1.0 + rows as f64);
            prop_assert!(oracle.bend <= BEND || all_close(&grad, &oracle.grad, scale));
            Ok(())
        })?;
    }

    #[test]
    fn fused_epilogues_are_those_after_the_product_to_the_bit(
        widths in proptest::collection::vec(1usize..200, 2..5),
        tanh in any::<bool>(),
        rows in 0usize..70,
        salt in any::<u64>(),
    ) {
        let activation = if tanh { Activation::Tanh } else { Activation::Relu };
        let one = Mlp::new(&widths, activation).unwrap();
        let params = numbers(one.n_params(), 0.3, salt);
        let x = numbers(rows * widths[0], 1.0, salt ^ 1);
        let grad_out = numbers(rows * one.n_outputs(), 1.0, salt ^ 2);
        at_every_level(|| {
            for precision in [Precision::Float32, Precision::Bfloat16, Precision::Bfloat16ByAmx] {
                let [before, after] = [false, true].map(|fused| {
                    let mlp = one.clone().with(precision).fused(fused);
                    let mut acts = Activations::default();
                    let outputs = mlp.forward(&params, &x, rows, &mut acts).to_vec();
                    let mut grad = vec![1.0; mlp.n_params()]; // is overwritten
                    mlp.backward(&params, &x, rows, &mut acts, &grad_out, &mut grad);
                    let numbers = [outputs, grad].concat();
                    numbers.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                });
                prop_assert_eq!(before, after);
            }
            Ok(())
        })?;
    }

    #[test]
    fn gradients_by_inputs_agree_with_the_formulas_in_f64(
        widths in proptest::collection::vec(1usize..70, 1..4),
        tanh in any::<bool>(),
        rows in 0usize..70,
        from in any::<prop::sample::Index>(),
        salt in any::<u64>(),
    ) {
        let activation = if tanh { Activation::Tanh } else { Activation::Relu };
        let (widths, from) = ([&widths[..], &[1]].concat(), from.index(widths[0]));
        let mlp = Mlp::new(&widths, activation).unwrap();
        let params = numbers(mlp.n_params(), 0.3, salt);
        let x = numbers(rows * widths[0], 1.0, salt ^ 1);
        let grad_out = numbers(rows, 1.0, salt ^ 2);
        let every: Vec<usize> = (0..rows).collect();
        let oracle = Oracle::new(&widths, activation, &params, &x, &grad_out);
        prop_assume!(oracle.bend > BEND);
        let by_row = oracle.grad_x.chunks(widths[0]);
        let expected: Vec<f64> = by_row.flat_map(|row| row[from..].to_vec()).collect();
        at_every_level(|| {
            let (mut acts, mut room) = (Activations::default(), InputGradient::default());
            mlp.forward(&params, &x, rows, &mut acts);
            let found = mlp.input_gradient(&params, &acts, &every, &grad_out, from, &mut room);
            prop_assert!(all_close(found, &expected, oracle.scale));
            Ok(())
        })?;
    }
}

/// Rounding changes an input of ReLU by less than this.
const BEND: f64 = 2e-6;

/// A network in float64, written as the formulas are.
struct Oracle {
    outputs: Vec<f64>,
    grad: Vec<f64>,
    grad_x: Vec<f64>,
    /// The largest magnitude of an activation or gradient: what rounding errors are relative to.
    scale: f64,
    /// How near an input of ReLU comes to 0, where rounding decides about a gradient.
    bend: f64,
}

impl Oracle {
    fn new(
        widths: &[usize],
        activation: Activation,
        params: &[f32],
        x: &[f32],
        grad_out: &[f32],
    ) -> Self {
        let params = wide(params);
        let starts: Vec<usize> = widths
            .windows(2)
            .scan(0, |at, pair| {
                let start = *at;
                *at += (pair[0] + 1) * pair[1];
                Some(start)
            })
            .collect();
        let last = widths.len() - 2;
        let n_out = widths[last + 1];
        let mut oracle = Self {
            outputs: Vec::new(),
            grad: vec![0.0; params.len()],
            grad_x: Vec::new(),
            scale: 1.0,
            bend: f64::INFINITY,
        };
        for (x, delta) in x.chunks(widths[0]).zip(grad_out.chunks(n_out)) {
            let mut layers = vec![wide(x)];
            for (layer, pair) in widths.windows(2).enumerate() {
                let (n_in, n_out, start) = (pair[0], pair[1], starts[layer]);
                let below = &layers[layer];
                let output = (0..n_out)
                    .map(|o| {
                        let row = &params[start + o * n_in..][..n_in];
                        let y = params[start + n_in * n_out + o]
                            + row.iter().zip(below).map(|(w, x)| w * x).sum::<f64>();
                        match activation {
                            _ if layer == last => y,
                            Activation::Tanh => y.tanh(),
                            Activation::Relu => {
                                oracle.bend = oracle.bend.min(y.abs());
                                y.max(0.0)
                            }
                        }
                    })
                    .collect();
                layers.push(output);
            }
            let mut delta = wide(delta);
            for layer in (0..=last).rev() {
                let (n_in, n_out, start) = (widths[layer], widths[layer + 1], starts[layer]);
                let mut below = vec![0.0; n_in];
                for (o, d) in delta.iter().enumerate() {
                    oracle.grad[start + n_in * n_out + o] += d;
                    for (i, below) in below.iter_mut().enumerate() {
                        let weight = start + o * n_in + i;
                        oracle.grad[weight] += d * layers[layer][i];
                        *below += d * params[weight];
                    }
                }
                if layer > 0 {
                    for (d, y) in below.iter_mut().zip(&layers[layer]) {
                        *d *= match activation {
                            Activation::Tanh => 1.0 - y * y,
                            Activation::Relu => f64::from(u8::from(*y > 0.0)),
                        };
                    }
                }
                delta = below;
                let largest = layers[layer + 1]
                    .iter()
                    .chain(&delta)
                    .fold(0.0, |a: f64, b| a.max(b.abs()));
                oracle.scale = oracle.scale.max(largest * (n_in as f64).sqrt());
            }
            oracle.outputs.extend(&layers[last + 1]);
            oracle.grad_x.extend(delta);
        }
        oracle
    }
}

#[test]
fn a_network_without_layers_is_refused() {
    assert!(Mlp::new(&[4], Activation::Tanh).is_err());
    assert!(Mlp::new(&[4, 0, 2], Activation::Tanh).is_err());
}
