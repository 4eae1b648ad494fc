//! The multilayer perceptron: its forward pass, and its backward pass by the chain rule.
//!
//! Parameters lie in one slice in the order of `torch.nn.Sequential.parameters()`: for each layer its
//! weight, `[out, in]` in row-major order, then its bias, `[out]`.

use super::bfloat16::Precision;
use super::gemm::{FLOATS, Strided};
use super::layers::{self, Epilogue};
use crate::RloxError;
use crate::memory::reserve;

/// The activation function between two linear layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// max(x, 0). Its derivative at 0 is 0, as in torch.
    Relu,
}

impl Activation {
    /// What backpropagation through the activation does, whose outputs were `of`.
    pub(super) fn derivative(self, of: &[f32]) -> Epilogue<'_> {
        match self {
            Self::Tanh => Epilogue::TanhDerivative(of),
            Self::Relu => Epilogue::ReluDerivative(of),
        }
    }
}

/// The shape of a network: linear layers, with the same activation after each but the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mlp {
    widths: Vec<usize>,
    pub(super) activation: Activation,
    /// Of the products of [`Mlp::forward`], [`Mlp::backward`] and [`Mlp::input_gradient`].
    pub(super) precision: Precision,
    /// Whether epilogues are fused into the products of [`Mlp::forward`] and [`Mlp::backward`].
    fused: bool,
}

/// What [`Mlp::forward`] leaves for [`Mlp::backward`], and the memory of both, kept between calls.
#[derive(Debug, Clone, Default)]
pub struct Activations {
    /// The output of each layer after its activation, `[rows, out]`.
    pub(super) layers: Vec<Vec<f32>>,
    /// The gradient of the loss by the present layer's output before its activation, `[rows, out]`.
    delta: Vec<f32>,
    /// The same for the layer below, `[rows, in]`.
    delta_below: Vec<f32>,
    /// The gradient by a weight where it is computed transposed, `[in, out]`.
    transposed: Vec<f32>,
}

impl Activations {
    /// Makes room for what [`Mlp::forward`] and [`Mlp::backward`] of `rows` rows keep here.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn reserve(&mut self, mlp: &Mlp, rows: usize) -> Result<(), RloxError> {
        reserve(&mut self.layers, mlp.layers().len())?;
        self.layers.resize(mlp.layers().len(), Vec::new());
        let (mut widest, mut most) = (0, 0);
        for (output, (n_in, n_out)) in self.layers.iter_mut().zip(mlp.layers()) {
            reserve(output, rows.saturating_mul(n_out))?;
            widest = widest.max(n_out);
            if layers::is_transposed(n_in, n_out) {
                most = most.max(n_in * n_out);
            }
        }
        reserve(&mut self.delta, rows.saturating_mul(widest))?;
        reserve(&mut self.delta_below, rows.saturating_mul(widest))?;
        reserve(&mut self.transposed, most)
    }
}

/// The most parameters, padding included, that an allocation can hold at all.
const MAX_PARAMS: usize = isize::MAX as usize / size_of::<f32>();

/// The fewest rows of a batch for which a product is faster than dot products, transposing the weights
/// included.
const PRODUCTS_PAY: usize = 4;

/// The first `n` elements of `buffer`, which grows to them. What they hold is left from earlier uses.
pub(super) fn grown(buffer: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if buffer.len() < n {
        buffer.resize(n, 0.0);
    }
    &mut buffer[..n]
}

/// Whether a layer has so few outputs that dot products are faster than the matrix product. They read
/// the weight as it is, `[out, in]`.
fn is_narrow(n_out: usize) -> bool {
    n_out < 4
}

impl Mlp {
    /// A network of `widths` (input, hidden…, output).
    ///
    /// # Errors
    /// If there are fewer than two widths, one is zero, or no memory holds so many parameters.
    pub fn new(widths: &[usize], activation: Activation) -> Result<Self, RloxError> {
        if widths.len() < 2 || widths.contains(&0) {
            return Err(RloxError::argument(
                "widths",
                format!("is {widths:?}, expected input, hidden…, output, each at least 1"),
            ));
        }
        let n_params = widths.windows(2).try_fold(0usize, |sum, ends| {
            let [n_in, n_out] = [ends[0], ends[1]].map(|n| n.saturating_add(FLOATS));
            sum.checked_add(n_in.checked_mul(n_out)?)
        });
        if n_params.is_none_or(|n| n > MAX_PARAMS) {
            return Err(RloxError::argument(
                "widths",
                format!("is {widths:?}, which does not fit into memory; choose smaller ones"),
            ));
        }
        Ok(Self {
            widths: widths.to_vec(),
            activation,
            precision: Precision::Float32,
            fused: true,
        })
    }

    /// The same network with products of this precision.
    pub fn with(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The same network with R23 on or off: whether bias and activation, or its derivative, are computed
    /// with each part of a product as soon as that is finished, or after the product. The results are the
    /// same to the bit.
    pub fn fused(self, fused: bool) -> Self {
        Self { fused, ..self }
    }

    pub(super) fn activation(&self) -> Activation {
        self.activation
    }

    /// The length of the parameter vector.
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

    /// The layers in order, each as the numbers of its inputs and outputs.
    pub(super) fn layers(
        &self,
    ) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator {
        self.widths.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// The outputs `[rows, out]` of the inputs `x`, `[rows, in]`.
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
        let mut rest = params;
        for (layer, (n_in, n_out)) in self.layers().enumerate() {
            let (below, from) = acts.layers.split_at_mut(layer);
            let input = below.last().map_or(x, Vec::as_slice);
            let input = &input[..rows * n_in];
            let output = &mut from[0];
            output.resize(rows * n_out, 0.0);
            let (weight, tail) = rest.split_at(n_in * n_out);
            let (bias, tail) = tail.split_at(n_out);
            rest = tail;
            let epilogue = match self.activation {
                _ if layer + 1 == n_layers => Epilogue::Bias(bias),
                Activation::Tanh => Epilogue::BiasTanh(bias),
                Activation::Relu => Epilogue::BiasRelu(bias),
            };
            if rows < PRODUCTS_PAY || is_narrow(n_out) {
                layers::dots(input, weight, n_in, output);
                epilogue.apply(output, n_out, 0..rows, 0..n_out);
            } else {
                let (a, b) = (Strided::rows(input, n_in), Strided::columns(weight, n_in));
                self.product([rows, n_out, n_in], a, b, output, epilogue);
            }
        }
        &acts.layers[n_layers - 1]
    }

    /// Sets `grad`, `[n_params]`, to the gradient of the loss by the parameters.
    ///
    /// `grad_out`, `[rows, out]`, is the gradient of the loss by the outputs. `acts` is what the latest
    /// [`Self::forward`] left behind; `params`, `x` and `rows` must be those of that call.
    ///
    /// # Panics
    /// If a slice is shorter than the shapes say.
    pub fn backward(
        &self,
        params: &[f32],
        x: &[f32],
        rows: usize,
        acts: &mut Activations,
        grad_out: &[f32],
        grad: &mut [f32],
    ) {
        let Activations {
            layers,
            delta,
            delta_below,
            transposed,
        } = acts;
        let n_top = rows * self.n_outputs();
        grown(delta, n_top).copy_from_slice(&grad_out[..n_top]);
        let mut end = self.n_params();
        for (layer, (n_in, n_out)) in self.layers().enumerate().rev() {
            let start = end - (n_in + 1) * n_out;
            let weight = &params[start..start + n_in * n_out];
            let (grad_weight, grad_bias) = grad[start..end].split_at_mut(n_in * n_out);
            end = start;
            let input = if layer == 0 { x } else { &layers[layer - 1] };
            let delta_here = &delta[..rows * n_out];
            layers::sum_columns(delta_here, grad_bias);
            let shape = [n_out, n_in];
            layers::weight_gradient(
                self.precision,
                rows,
                delta_here,
                input,
                shape,
                transposed,
                grad_weight,
            );
            if layer == 0 {
                return;
            }

            let below = grown(delta_below, rows * n_in);
            let (a, b) = (
                Strided::rows(delta_here, n_out),
                Strided::rows(weight, n_in),
            );
            let derivative = self.activation.derivative(input);
            self.product([rows, n_in, n_out], a, b, below, derivative);
            std::mem::swap(delta, delta_below);
        }
    }

    /// `c = a b`, then the epilogue; `shape` has the numbers of rows, columns and terms.
    fn product(
        &self,
        shape: [usize; 3],
        a: Strided<'_>,
        b: Strided<'_>,
        c: &mut [f32],
        epilogue: Epilogue<'_>,
    ) {
        if self.fused {
            return self.precision.product(shape, a, b, c, epilogue);
        }
        self.precision.product(shape, a, b, c, Epilogue::None);
        let [rows, n, _] = shape;
        epilogue.apply(c, n, 0..rows, 0..n);
    }
}
