//! The multilayer perceptron: forward, and backward by the chain rule.
//!
//! Parameters lie in one slice in the order of `torch.nn.Sequential.parameters()`: layer after
//! layer, weight `[out, in]` in row-major order, then bias `[out]`.

use super::gemm::{FLOATS, Strided, gemm};
use super::layers;
use crate::RloxError;
use crate::memory::reserve;

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

/// Parameters as the forward pass reads them, made by [`Mlp::pack`].
#[derive(Debug, Clone, Default)]
pub struct Packed {
    /// Layer after layer: the weight, transposed to `[in, ld]` unless the layer is narrow, then the
    /// bias.
    values: Vec<f32>,
}

/// What [`Mlp::forward`] leaves for [`Mlp::backward`], and room for both; kept between calls.
#[derive(Debug, Clone, Default)]
pub struct Activations {
    packed: Packed,
    /// Output of every layer, after its activation, `[rows, out]`.
    pub(super) layers: Vec<Vec<f32>>,
    /// Gradient of the loss by the output of the layer in hand, before its activation.
    delta: Vec<f32>,
    /// The same for the layer below.
    delta_below: Vec<f32>,
    /// A gradient by a weight, as `[in, out]`.
    transposed: Vec<f32>,
}

impl Activations {
    /// Makes room for [`Mlp::forward`] of so many rows, and [`Mlp::backward`], which then take none.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn reserve(&mut self, mlp: &Mlp, rows: usize) -> Result<(), RloxError> {
        self.packed.reserve(mlp)?;
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

impl Packed {
    /// Makes room for [`Mlp::pack`].
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn reserve(&mut self, mlp: &Mlp) -> Result<(), RloxError> {
        reserve(&mut self.values, mlp.packed_len())
    }
}

/// Parameters, with what padding adds to them, that any computer has memory for.
const MAX_PARAMS: usize = isize::MAX as usize / size_of::<f32>();

/// Rows from which on packing costs less than it saves.
const PACKING_PAYS: usize = 4;

/// Elements in a row of a packed weight: whole vectors, if it is transposed.
fn row_of(n_out: usize) -> usize {
    if is_narrow(n_out) {
        n_out
    } else {
        n_out.next_multiple_of(FLOATS)
    }
}

/// The first `n` elements, of which nothing is known.
pub(super) fn grown(buffer: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if buffer.len() < n {
        buffer.resize(n, 0.0);
    }
    &mut buffer[..n]
}

/// Whether a layer's few outputs are made as dot products, in which a weight's rows lie right.
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
        })
    }

    /// What stands between the layers.
    pub(super) fn activation(&self) -> Activation {
        self.activation
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

    /// Length of the packed parameters.
    fn packed_len(&self) -> usize {
        let size = |(n_in, n_out)| n_in * row_of(n_out) + n_out;
        self.layers().map(size).sum()
    }

    /// Arranges `params` for [`Self::forward_packed`].
    ///
    /// # Panics
    /// If `params` is shorter than [`Self::n_params`].
    pub fn pack(&self, params: &[f32], packed: &mut Packed) {
        // What fills a row up is not read as a result, and need not be cleared.
        let mut to = grown(&mut packed.values, self.packed_len());
        let mut rest = params;
        for (n_in, n_out) in self.layers() {
            let (weight, tail) = rest.split_at(n_in * n_out);
            let (bias, tail) = tail.split_at(n_out);
            let (to_weight, to_rest) = to.split_at_mut(n_in * row_of(n_out));
            if is_narrow(n_out) {
                to_weight.copy_from_slice(weight);
            } else {
                layers::transpose(weight, n_in, row_of(n_out), to_weight);
            }
            to_rest[..n_out].copy_from_slice(bias);
            to = &mut to_rest[n_out..];
            rest = tail;
        }
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
        if rows < PACKING_PAYS {
            // As they are, parameters are packed for narrow layers.
            self.run(params, true, x, rows, acts);
        } else {
            let mut packed = std::mem::take(&mut acts.packed);
            self.pack(params, &mut packed);
            self.forward_packed(&packed, x, rows, acts);
            acts.packed = packed;
        }
        &acts.layers[self.layers().len() - 1]
    }

    /// [`Self::forward`] with parameters packed once for many calls: where rows are few, packing
    /// costs more than they do.
    ///
    /// # Panics
    /// If a slice is shorter than the shapes say, or `packed` comes from another network.
    pub fn forward_packed<'a>(
        &self,
        packed: &Packed,
        x: &[f32],
        rows: usize,
        acts: &'a mut Activations,
    ) -> &'a [f32] {
        self.run(&packed.values, false, x, rows, acts)
    }

    /// The forward pass, by dot products throughout if `all_narrow`.
    fn run<'a>(
        &self,
        packed: &[f32],
        all_narrow: bool,
        x: &[f32],
        rows: usize,
        acts: &'a mut Activations,
    ) -> &'a [f32] {
        let n_layers = self.layers().len();
        acts.layers.resize(n_layers, Vec::new());
        let mut rest = packed;
        for (layer, (n_in, n_out)) in self.layers().enumerate() {
            let (below, from) = acts.layers.split_at_mut(layer);
            let input = below.last().map_or(x, Vec::as_slice);
            let input = &input[..rows * n_in];
            let output = &mut from[0];
            output.resize(rows * n_out, 0.0);
            let narrow = all_narrow || is_narrow(n_out);
            let ld = if narrow { n_out } else { row_of(n_out) };
            let (weight, tail) = rest.split_at(n_in * ld);
            let (bias, tail) = tail.split_at(n_out);
            rest = tail;
            if narrow {
                layers::dots(input, weight, n_in, output);
            } else {
                let a = Strided {
                    data: input,
                    row: n_in,
                    column: 1,
                };
                gemm(rows, n_out, n_in, a, weight, ld, output, false);
            }
            match self.activation {
                _ if layer + 1 == n_layers => layers::add_bias(output, bias),
                Activation::Tanh => layers::add_bias_tanh(output, bias),
                Activation::Relu => layers::add_bias_relu(output, bias),
            }
        }
        &acts.layers[n_layers - 1]
    }

    /// Adds the gradient by the parameters to `grad`.
    ///
    /// `grad_out`, `[rows, out]`, is the gradient by the outputs of the latest [`Self::forward`]
    /// with this `acts`, whose `params`, `x` and `rows` are given again.
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
            ..
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
            layers::add_columns(delta_here, grad_bias);
            let shape = [n_out, n_in];
            layers::add_weight_gradient(rows, delta_here, input, shape, transposed, grad_weight);
            if layer == 0 {
                return;
            }

            let below = grown(delta_below, rows * n_in);
            let a = Strided {
                data: delta_here,
                row: n_out,
                column: 1,
            };
            gemm(rows, n_in, n_out, a, weight, n_in, below, false);
            match self.activation {
                Activation::Tanh => layers::times_tanh_derivative(below, input),
                Activation::Relu => layers::times_relu_derivative(below, input),
            }
            std::mem::swap(delta, delta_below);
        }
    }
}
