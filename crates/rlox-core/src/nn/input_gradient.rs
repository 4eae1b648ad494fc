//! The gradient by some of a network's inputs alone: what a critic tells an actor.

use super::{Activation, Activations, Mlp};

/// Room for [`Mlp::input_gradient`], and its result.
#[derive(Debug, Clone, Default)]
pub struct InputGradient {
    delta: Vec<f32>,
    delta_below: Vec<f32>,
}

impl Mlp {
    /// Gradient of `sum of grad_out[i] * output(rows[i])` by the inputs from number `from` on,
    /// `[rows.len(), in - from]`, for a network of one output.
    ///
    /// `acts` is what [`Self::forward`] left behind with the same `params`. The parameters get no
    /// gradient and the other rows cost nothing.
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
        delta.clear();
        delta.extend_from_slice(grad_out);
        let mut end = self.n_params();
        for (layer, (n_in, n_out)) in self.layers().enumerate().rev() {
            let start = end - (n_in + 1) * n_out;
            let from = if layer == 0 { from } else { 0 };
            let width = n_in - from;
            delta_below.clear();
            delta_below.resize(rows.len() * width, 0.0);
            for (below, d) in delta_below
                .chunks_exact_mut(width)
                .zip(delta.chunks_exact(n_out))
            {
                for (w, &d) in params[start..].chunks_exact(n_in).zip(d) {
                    below
                        .iter_mut()
                        .zip(&w[from..])
                        .for_each(|(b, w)| *b += d * w);
                }
            }
            if layer > 0 {
                let outputs = &acts.layers[layer - 1];
                for (d, &row) in delta_below.chunks_exact_mut(width).zip(rows) {
                    let y = &outputs[row * width..(row + 1) * width];
                    d.iter_mut()
                        .zip(y)
                        .for_each(|(d, &y)| match self.activation {
                            Activation::Tanh => *d *= 1.0 - y * y,
                            Activation::Relu => *d *= f32::from(u8::from(y > 0.0)),
                        });
                }
            }
            std::mem::swap(delta, delta_below);
            end = start;
        }
        delta
    }
}
