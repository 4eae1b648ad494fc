//! The multilayer perceptron: forward, and backward by the chain rule.
//!
//! Parameters lie in one slice in the order of `torch.nn.Sequential.parameters()`: layer after
//! layer, weight `[out, in]` in row-major order, then bias `[out]`.

use crate::RloxError;

/// What stands between two linear layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// max(x, 0), with derivative 0 at 0, as torch has it.
    Relu,
}

/// The shape of a network: linear layers with one activation between them, none after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mlp {
    widths: Vec<usize>,
    pub(super) activation: Activation,
}

/// What [`Mlp::forward`] leaves for [`Mlp::backward`], and room for both; kept between calls.
#[derive(Debug, Clone, Default)]
pub struct Activations {
    /// Output of every layer, after its activation, `[rows, out]`.
    pub(super) layers: Vec<Vec<f32>>,
    /// Gradient of the loss by the output of the layer in hand, before its activation.
    delta: Vec<f32>,
    /// The same for the layer below.
    delta_below: Vec<f32>,
}

impl Mlp {
    /// A network of `widths` (input, hidden…, output).
    ///
    /// # Errors
    /// If there are fewer than two widths, or one is zero.
    pub fn new(widths: &[usize], activation: Activation) -> Result<Self, RloxError> {
        if widths.len() < 2 || widths.contains(&0) {
            return Err(RloxError::argument(
                "widths",
                format!("is {widths:?}, expected input, hidden…, output, each at least 1"),
            ));
        }
        Ok(Self {
            widths: widths.to_vec(),
            activation,
        })
    }

    /// Length of the parameter vector.
    pub fn n_params(&self) -> usize {
        self.layers().map(|(n_in, n_out)| (n_in + 1) * n_out).sum()
    }

    /// Width of an input row.
    pub fn n_inputs(&self) -> usize {
        self.widths[0]
    }

    /// Width of an output row.
    pub fn n_outputs(&self) -> usize {
        self.widths[self.widths.len() - 1]
    }

    pub(super) fn layers(
        &self,
    ) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator {
        self.widths.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// Outputs `[rows, out]` of the inputs `x`, `[rows, in]`.
    ///
    /// # Panics
    /// If a slice is shorter than the shapes say.
    pub fn forward<'a>(
        &self,
        params: &[f32],
        x: &[f32],
        rows: usize,
        acts: &'a mut Activations,
    ) -> &'a [f32] {
        let n_layers = self.layers().len();
        acts.layers.resize(n_layers, Vec::new());
        let mut at = 0;
        for (layer, (n_in, n_out)) in self.layers().enumerate() {
            let (below, rest) = acts.layers.split_at_mut(layer);
            let input = below.last().map_or(x, Vec::as_slice);
            let output = &mut rest[0];
            output.resize(rows * n_out, 0.0);
            let weight = &params[at..at + n_in * n_out];
            let bias = &params[at + n_in * n_out..at + (n_in + 1) * n_out];
            at += (n_in + 1) * n_out;
            for (y, x) in output.chunks_exact_mut(n_out).zip(input.chunks_exact(n_in)) {
                for ((y, w), &b) in y.iter_mut().zip(weight.chunks_exact(n_in)).zip(bias) {
                    *y = b + w.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
                }
            }
            if layer + 1 < n_layers {
                match self.activation {
                    Activation::Tanh => output.iter_mut().for_each(|y| *y = y.tanh()),
                    Activation::Relu => output.iter_mut().for_each(|y| *y = y.max(0.0)),
                }
            }
        }
        &acts.layers[n_layers - 1]
    }

    /// Adds the gradient by the parameters to `grad`, and writes that by the inputs to `grad_x`.
    ///
    /// `grad_out`, `[rows, out]`, is the gradient by the outputs of the latest [`Self::forward`]
    /// with this `acts`, whose `params`, `x` and `rows` are given again.
    ///
    /// # Panics
    /// If a slice is shorter than the shapes say.
    #[expect(clippy::too_many_arguments, reason = "the chain rule's inputs")]
    pub fn backward(
        &self,
        params: &[f32],
        x: &[f32],
        rows: usize,
        acts: &mut Activations,
        grad_out: &[f32],
        grad: &mut [f32],
        grad_x: Option<&mut [f32]>,
    ) {
        let Activations {
            layers,
            delta,
            delta_below,
        } = acts;
        delta.clear();
        delta.extend_from_slice(&grad_out[..rows * self.n_outputs()]);
        let mut end = self.n_params();
        for (layer, (n_in, n_out)) in self.layers().enumerate().rev() {
            let start = end - (n_in + 1) * n_out;
            let weight = &params[start..start + n_in * n_out];
            let (grad_weight, grad_bias) = grad[start..end].split_at_mut(n_in * n_out);
            let input = if layer == 0 { x } else { &layers[layer - 1] };
            for (d, x) in delta.chunks_exact(n_out).zip(input.chunks_exact(n_in)) {
                for ((g, gb), &d) in grad_weight
                    .chunks_exact_mut(n_in)
                    .zip(grad_bias.iter_mut())
                    .zip(d)
                {
                    *gb += d;
                    g.iter_mut().zip(x).for_each(|(g, x)| *g += d * x);
                }
            }
            if layer == 0 && grad_x.is_none() {
                return;
            }
            delta_below.clear();
            delta_below.resize(rows * n_in, 0.0);
            for (below, d) in delta_below
                .chunks_exact_mut(n_in)
                .zip(delta.chunks_exact(n_out))
            {
                for (w, &d) in weight.chunks_exact(n_in).zip(d) {
                    below.iter_mut().zip(w).for_each(|(b, w)| *b += d * w);
                }
            }
            if layer > 0 {
                let derivative = |y: f32| match self.activation {
                    Activation::Tanh => 1.0 - y * y,
                    Activation::Relu => f32::from(u8::from(y > 0.0)),
                };
                for (d, &y) in delta_below.iter_mut().zip(input) {
                    *d *= derivative(y);
                }
            }
            std::mem::swap(delta, delta_below);
            end = start;
        }
        if let Some(grad_x) = grad_x {
            grad_x[..rows * self.n_inputs()].copy_from_slice(delta);
        }
    }
}
