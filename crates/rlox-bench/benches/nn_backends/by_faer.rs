//! The product of a linear layer by faer, a library of linear algebra.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::cases::{Arm, LAYER, LAYER_ROWS, Step, layer_inputs, params};

/// None for the other steps, which need more than products.
pub(crate) fn arm(step: Step) -> Option<Box<dyn Arm>> {
    (step == Step::Layer).then(|| -> Box<dyn Arm> {
        let mut weight = params(&LAYER, 0);
        Box::new(Layer {
            bias: weight.split_off(LAYER[0] * LAYER[1]),
            weight,
            x: layer_inputs(),
            y: vec![0.0; LAYER_ROWS * LAYER[1]],
            par: match rayon::current_num_threads() {
                1 => Par::Seq,
                _ => Par::rayon(0),
            },
        })
    })
}

struct Layer {
    weight: Vec<f32>,
    bias: Vec<f32>,
    x: Vec<f32>,
    y: Vec<f32>,
    par: Par,
}

impl Arm for Layer {
    fn step(&mut self) {
        let [n_in, n_out] = LAYER;
        for row in self.y.chunks_exact_mut(n_out) {
            row.copy_from_slice(&self.bias);
        }
        matmul(
            MatMut::from_row_major_slice_mut(&mut self.y, LAYER_ROWS, n_out),
            Accum::Add,
            MatRef::from_row_major_slice(&self.x, LAYER_ROWS, n_in),
            MatRef::from_row_major_slice(&self.weight, n_out, n_in).transpose(),
            1.0,
            self.par,
        );
    }

    fn answer(&mut self) -> Vec<f32> {
        self.y.clone()
    }
}
