//! What must hold of the networks: against a plain oracle in f64, and against differences.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

/// Numbers in [-scale, scale), the same at every run.
fn numbers(n: usize, scale: f32, salt: u64) -> Vec<f32> {
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

/// Sum of `grad_out * outputs` in f64, layer by layer as the formula has it.
fn oracle(
    widths: &[usize],
    activation: Activation,
    params: &[f64],
    x: &[f64],
    grad_out: &[f32],
) -> (Vec<f64>, f64) {
    let mut rows: Vec<Vec<f64>> = x.chunks(widths[0]).map(<[f64]>::to_vec).collect();
    let mut at = 0;
    for (layer, pair) in widths.windows(2).enumerate() {
        let (n_in, n_out) = (pair[0], pair[1]);
        for row in &mut rows {
            *row = (0..n_out)
                .map(|o| {
                    let y = params[at + n_in * n_out + o]
                        + (0..n_in)
                            .map(|i| params[at + o * n_in + i] * row[i])
                            .sum::<f64>();
                    match activation {
                        _ if layer + 2 == widths.len() => y,
                        Activation::Tanh => y.tanh(),
                        Activation::Relu => y.max(0.0),
                    }
                })
                .collect();
        }
        at += (n_in + 1) * n_out;
    }
    let outputs = rows.concat();
    let loss = outputs
        .iter()
        .zip(grad_out)
        .map(|(y, &g)| y * f64::from(g))
        .sum();
    (outputs, loss)
}

fn close(found: f32, expected: f64, scale: f64) -> bool {
    (f64::from(found) - expected).abs() <= 1e-5 * scale
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn forward_and_backward_agree_with_the_formula_in_f64(
        widths in proptest::collection::vec(1usize..40, 2..5),
        tanh in any::<bool>(),
        rows in 0usize..40,
        salt in any::<u64>(),
    ) {
        let activation = if tanh { Activation::Tanh } else { Activation::Relu };
        let mlp = Mlp::new(&widths, activation).unwrap();
        let params = numbers(mlp.n_params(), 0.5, salt);
        let x = numbers(rows * widths[0], 1.0, salt ^ 1);
        let grad_out = numbers(rows * mlp.n_outputs(), 1.0, salt ^ 2);
        let mut acts = Activations::default();
        let wide = |v: &[f32]| v.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        let (expected, _) = oracle(&widths, activation, &wide(&params), &wide(&x), &grad_out);
        let found = mlp.forward(&params, &x, rows, &mut acts).to_vec();
        prop_assert_eq!(found.len(), expected.len());
        let scale = 1.0 + expected.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        prop_assert!(found.iter().zip(&expected).all(|(&f, &e)| close(f, e, scale)));

        let mut grad = vec![1.0; mlp.n_params()];
        let mut grad_x = vec![f32::NAN; x.len()];
        mlp.backward(&params, &x, rows, &mut acts, &grad_out, &mut grad, Some(&mut grad_x));
        let difference = |of_params: bool, i: usize| {
            let loss = |step: f64| {
                let (mut params, mut x) = (wide(&params), wide(&x));
                *(if of_params { &mut params[i] } else { &mut x[i] }) += step;
                oracle(&widths, activation, &params, &x, &grad_out).1
            };
            (loss(1e-6) - loss(-1e-6)) / 2e-6
        };
        let scale = 1.0 + 10.0 * rows as f64;
        for i in (0..grad.len()).step_by(grad.len() / 20 + 1) {
            let expected = 1.0 + difference(true, i);
            prop_assert!(close(grad[i], expected, scale), "{} {}", grad[i], expected);
        }
        for i in (0..x.len()).step_by(x.len() / 20 + 1) {
            prop_assert!(close(grad_x[i], difference(false, i), 10.0));
        }
    }
}

#[test]
fn a_network_without_layers_is_refused() {
    assert!(Mlp::new(&[4], Activation::Tanh).is_err());
    assert!(Mlp::new(&[4, 0, 2], Activation::Tanh).is_err());
}
