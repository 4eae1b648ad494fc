//! The packed forward pass against the formula in float64, with every instruction set that this
//! processor has.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::simd::{FORCED, LEVELS};

fn numbers(n: usize) -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec(-1.0f32..1.0, n)
}

/// A network, its parameters and some inputs.
fn case() -> impl Strategy<Value = (Mlp, Vec<f32>, Vec<f32>)> {
    let widths = proptest::collection::vec(1usize..40, 2..5);
    (widths, any::<bool>(), 0usize..20).prop_flat_map(|(widths, tanh, rows)| {
        let activation = if tanh {
            Activation::Tanh
        } else {
            Activation::Relu
        };
        let mlp = Mlp::new(&widths, activation).unwrap();
        let (params, x) = (numbers(mlp.n_params()), numbers(rows * widths[0]));
        (Just(mlp), params, x)
    })
}

fn in_f64(mlp: &Mlp, params: &[f32], x: &[f32]) -> Vec<f64> {
    let mut values: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let mut rest = params;
    let n_layers = mlp.layers().len();
    for (layer, (n_in, n_out)) in mlp.layers().enumerate() {
        let (weight, tail) = rest.split_at(n_in * n_out);
        let (bias, tail) = tail.split_at(n_out);
        rest = tail;
        let mut outputs = Vec::new();
        for row in values.chunks(n_in) {
            for (weight, &bias) in weight.chunks(n_in).zip(bias) {
                let products = weight.iter().zip(row).map(|(&w, x)| f64::from(w) * x);
                let y = f64::from(bias) + products.sum::<f64>();
                outputs.push(match mlp.activation() {
                    _ if layer + 1 == n_layers => y,
                    Activation::Tanh => y.tanh(),
                    Activation::Relu => y.max(0.0),
                });
            }
        }
        values = outputs;
    }
    values
}

fn forward_of(net: &PackedMlp, x: &[f32]) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() / net.mlp.n_inputs() * net.mlp.n_outputs()];
    net.forward(x, &mut Hidden::default(), &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn outputs_are_those_of_the_formula_at_every_level((mlp, params, x) in case()) {
        let expected = in_f64(&mlp, &params, &x);
        let net = PackedMlp::new(mlp, &params).unwrap();
        let scale = expected.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
        for &level in LEVELS.iter() {
            FORCED.set(Some(level));
            let found = forward_of(&net, &x);
            FORCED.set(None);
            for (&found, &expected) in found.iter().zip(&expected) {
                let error = (f64::from(found) - expected).abs();
                prop_assert!(error <= 2e-5 * scale, "{found} {expected} at {level:?}");
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_neighbours((mlp, params, x) in case()) {
        let n_inputs = mlp.n_inputs();
        let net = PackedMlp::new(mlp, &params).unwrap();
        let alone: Vec<f32> = x.chunks(n_inputs).flat_map(|row| forward_of(&net, row)).collect();
        prop_assert_eq!(forward_of(&net, &x), alone);
    }
}

#[test]
fn what_is_no_number_stays_none() {
    for activation in [Activation::Tanh, Activation::Relu] {
        let mlp = Mlp::new(&[1, 20, 1], activation).unwrap();
        let net = PackedMlp::new(mlp.clone(), &vec![1.0; mlp.n_params()]).unwrap();
        assert!(forward_of(&net, &[f32::NAN])[0].is_nan());
    }
}

#[test]
fn parameters_must_be_as_many_as_the_network_has() {
    let mlp = Mlp::new(&[2, 3], Activation::Tanh).unwrap();
    assert!(PackedMlp::new(mlp, &[0.0; 8]).is_err());
}
