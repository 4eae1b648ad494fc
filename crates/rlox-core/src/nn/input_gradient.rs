//! The gradient of a network's output by some of its inputs. SAC's actor is updated along the gradient
//! of Q(s, a) by a, so neither the gradient by s nor that by the parameters is needed.

use super::gemm::Strided;
use super::layers::Epilogue;
use super::mlp::grown;
use super::{Activations, Mlp};
use crate::RloxError;
use crate::memory::reserve;

/// Memory of [`Mlp::input_gradient`], kept between calls. The result lies in it, too.
#[derive(Debug, Clone, Default)]
pub struct InputGradient {
    delta: Vec<f32>,
    delta_below: Vec<f32>,
}

impl InputGradient {
    /// Makes room for what [`Mlp::input_gradient`] of `rows` rows keeps here.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn reserve(&mut self, mlp: &Mlp, rows: usize) -> Result<(), RloxError> {
        let widest = mlp.layers().map(|(n_in, n_out)| n_in.max(n_out)).max();
        let most = rows.saturating_mul(widest.unwrap_or(0));
        reserve(&mut self.delta, most)?;
        reserve(&mut self.delta_below, most)
    }
}

impl Mlp {
    /// The gradient of the output at each of the given rows by the inputs from number `from` on, times
    /// `grad_out`: `[rows.len(), in - from]`, for a network of one output.
    ///
    /// `rows` are the numbers of rows of the batch that [`Self::forward`] was given, and `grad_out` has
    /// a factor for each. `acts` is what `forward` left behind with the same `params`. Rows that are
    /// not asked for cost nothing.
    ///
    /// # Panics
    /// If a slice is shorter than the shapes say.
    pub fn input_gradient<'a>(
        &self,
        params: &[f32],
        acts: &Activations,
        rows: &[usize],
        grad_out: &[f32],
        from: usize,
        room: &'a mut InputGradient,
    ) -> &'a [f32] {
        let InputGradient { delta, delta_below } = room;
        grown(delta, rows.len()).copy_from_slice(grad_out);
        let mut end = self.n_params();
        for (layer, (n_in, n_out)) in self.layers().enumerate().rev() {
            let start = end - (n_in + 1) * n_out;
            let from = if layer == 0 { from } else { 0 };
            let width = n_in - from;
            let below = grown(delta_below, rows.len() * width);
            let weight = &params[start + from..start + n_in * n_out];
            let (a, b) = (Strided::rows(delta, n_out), Strided::rows(weight, n_in));
            let shape = [rows.len(), width, n_out];
            self.precision.product(shape, a, b, below, Epilogue::None);
            if layer > 0 {
                let outputs = &acts.layers[layer - 1];
                for (delta, &row) in below.chunks_exact_mut(width).zip(rows) {
                    let y = &outputs[row * width..(row + 1) * width];
                    let derivative = self.activation.derivative(y);
                    derivative.apply(delta, width, 0..1, 0..width);
                }
            }
            std::mem::swap(delta, delta_below);
            end = start;
        }
        &delta[..rows.len() * (self.n_inputs() - from)]
    }
}
