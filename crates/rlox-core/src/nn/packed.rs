//! The forward pass for a few rows at a time, as a policy needs it at each step of its environments.
//!
//! With 8 rows and two hidden layers of 64, latency and loads take the time, not arithmetic. So the
//! weights are packed once for many calls: for each block of 16 outputs, the weights of one input lie
//! side by side. The inner loop keeps a tile of `ROWS` x 16 outputs in registers, and for each input
//! does one load of weights and one multiply-add for each row.
//!
//! A sum runs over the inputs in the same order in every tile, so a row's outputs do not depend on how
//! many other rows are computed with it.
#![allow(
    unsafe_code,
    reason = "a bounds check for each multiply-add would cost as much as the arithmetic"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

#[cfg(test)]
mod tests;

use super::gemm::FLOATS;
use super::{Activation, Mlp};
use crate::error::{RloxError, check_len};
use crate::math::tanh_one;
use crate::memory::reserved;
use crate::simd::{Sixteen, kernel};

/// Sixteen numbers, one for each output of a block: biases, the weights of one input, or results.
/// Aligned to a cache line, so that one load reads one line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct PerOutput([f32; FLOATS]);

/// A network with a copy of its weights, in the order in which the forward pass reads them.
#[derive(Debug, Clone)]
pub struct PackedMlp {
    mlp: Mlp,
    /// For each layer and each of its blocks of outputs: the biases, then the weights of each input.
    /// Outputs that fill the last block up have weights of zero.
    weights: Vec<PerOutput>,
}

/// Memory for the outputs of hidden layers for the rows of one tile, kept between calls.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    /// The present layer's inputs, `[rows, blocks, 16]`.
    below: Vec<[f32; FLOATS]>,
    /// Its outputs.
    above: Vec<[f32; FLOATS]>,
}

impl Hidden {
    /// With room for the hidden layers of any of these networks.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn of(networks: &[&Mlp]) -> Result<Self, RloxError> {
        let widths = networks.iter().flat_map(|mlp| mlp.layers());
        let blocks = widths.map(|(_, n_out)| n_out.div_ceil(FLOATS)).max();
        let most = blocks.unwrap_or(0) * MOST_ROWS;
        Ok(Self {
            below: reserved(most)?,
            above: reserved(most)?,
        })
    }
}

/// Rows of the largest tile, which AVX-512 has registers for.
const MOST_ROWS: usize = 8;

impl PackedMlp {
    /// A network of the shape `mlp` with the parameters `params`, `[n_params]`.
    ///
    /// # Errors
    /// If `params` has another length, or there is no memory.
    pub fn new(mlp: Mlp, params: &[f32]) -> Result<Self, RloxError> {
        check_len("params", params.len(), mlp.n_params())?;
        let blocks = |(n_in, n_out): (usize, usize)| n_out.div_ceil(FLOATS) * (1 + n_in);
        let mut weights = reserved(mlp.layers().map(blocks).sum())?;
        let mut at = 0;
        for (n_in, n_out) in mlp.layers() {
            let (weight, bias) = params[at..at + (n_in + 1) * n_out].split_at(n_in * n_out);
            at += (n_in + 1) * n_out;
            for first in (0..n_out).step_by(FLOATS) {
                let start = weights.len();
                weights.resize(start + 1 + n_in, PerOutput([0.0; FLOATS]));
                let (biases, columns) = weights[start..].split_at_mut(1);
                for (lane, output) in (first..n_out.min(first + FLOATS)).enumerate() {
                    biases[0].0[lane] = bias[output];
                    let row = &weight[output * n_in..(output + 1) * n_in];
                    for (column, &w) in columns.iter_mut().zip(row) {
                        column.0[lane] = w;
                    }
                }
            }
        }
        Ok(Self { mlp, weights })
    }

    /// The network's shape.
    pub fn mlp(&self) -> &Mlp {
        &self.mlp
    }

    /// Writes the outputs, `[rows, out]`, of the inputs `x`, `[rows, in]`, to `out`.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn forward(&self, x: &[f32], hidden: &mut Hidden, out: &mut [f32]) {
        let rows = x.len() / self.mlp.n_inputs();
        assert_eq!(out.len(), rows * self.mlp.n_outputs());
        forward(self, x, hidden, out);
    }

    /// The forward pass of `ROWS` rows through all layers.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    unsafe fn tile<I: Sixteen, const ROWS: usize>(
        &self,
        x: &[f32],
        hidden: &mut Hidden,
        out: &mut [f32],
    ) {
        let n_layers = self.mlp.layers().len();
        let mut weights = &self.weights[..];
        for (layer, (n_in, n_out)) in self.mlp.layers().enumerate() {
            let n_blocks = n_out.div_ceil(FLOATS);
            let (here, rest) = weights.split_at(n_blocks * (1 + n_in));
            weights = rest;
            let (input, stride) = match layer {
                0 => (x, n_in),
                _ => (
                    hidden.below.as_flattened(),
                    hidden.below.len() / ROWS * FLOATS,
                ),
            };
            hidden.above.resize(n_blocks * ROWS, [0.0; FLOATS]);
            for (block, weights) in here.chunks_exact(1 + n_in).enumerate() {
                // SAFETY: the caller has seen that the processor has the instructions of `I`.
                let sums = unsafe { sums::<I, ROWS>(weights, input, stride) };
                if layer + 1 < n_layers {
                    for (row, sums) in sums.iter().enumerate() {
                        hidden.above[row * n_blocks + block] = sums.0;
                    }
                } else {
                    let used = FLOATS.min(n_out - block * FLOATS);
                    for (out, sums) in out.chunks_exact_mut(n_out).zip(&sums) {
                        out[block * FLOATS..][..used].copy_from_slice(&sums.0[..used]);
                    }
                }
            }
            if layer + 1 < n_layers {
                let values = hidden.above.as_flattened_mut().iter_mut();
                match self.mlp.activation() {
                    Activation::Tanh => values.for_each(|y| *y = tanh_one::<I>(*y)),
                    // NaN stays NaN, as in torch. `y.max(0.0)` would make 0 of it.
                    Activation::Relu => values.for_each(|y| *y = if *y < 0.0 { 0.0 } else { *y }),
                }
            }
            std::mem::swap(&mut hidden.below, &mut hidden.above);
        }
    }
}

kernel! {
    fn forward(net: &PackedMlp, x: &[f32], hidden: &mut Hidden, out: &mut [f32]) = forward_body;
}

/// Cuts the rows into tiles: as large as the registers allow, which hides the latency of the
/// multiply-adds, then smaller ones for the rows that are left.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn forward_body<I: Sixteen>(
    net: &PackedMlp,
    x: &[f32],
    hidden: &mut Hidden,
    out: &mut [f32],
) {
    let mut rest = (x, out);
    // SAFETY: the caller has seen that the processor has the instructions of `I`.
    unsafe {
        if I::WIDE {
            rest = tiles::<I, MOST_ROWS>(net, rest, hidden);
        }
        rest = tiles::<I, 4>(net, rest, hidden);
        tiles::<I, 1>(net, rest, hidden);
    }
}

/// As many tiles of `ROWS` rows as there are; returns the inputs and outputs of the rows that are left.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn tiles<'a, I: Sixteen, const ROWS: usize>(
    net: &PackedMlp,
    (x, out): (&'a [f32], &'a mut [f32]),
    hidden: &mut Hidden,
) -> (&'a [f32], &'a mut [f32]) {
    let mut xs = x.chunks_exact(ROWS * net.mlp.n_inputs());
    let mut outs = out.chunks_exact_mut(ROWS * net.mlp.n_outputs());
    for (x, out) in xs.by_ref().zip(outs.by_ref()) {
        // SAFETY: the caller has seen that the processor has the instructions of `I`.
        unsafe { net.tile::<I, ROWS>(x, hidden, out) };
    }
    (xs.remainder(), outs.into_remainder())
}

/// The micro-kernel: bias plus weights times inputs, for one block of outputs of `ROWS` rows. The rows
/// of `x` are `stride` elements apart.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn sums<I: Sixteen, const ROWS: usize>(
    weights: &[PerOutput],
    x: &[f32],
    stride: usize,
) -> [PerOutput; ROWS] {
    let (bias, weights) = weights.split_at(1);
    assert!(x.len() >= (ROWS - 1) * stride + weights.len());
    // SAFETY: the caller has seen that the processor has the instructions of `I`. A `PerOutput` has
    // sixteen floats, as many as are read and written at once. The assertion says that `x` reaches to
    // the last input of the last row.
    unsafe {
        let mut sums = [I::read(bias[0].0.as_ptr()); ROWS];
        for (k, w) in weights.iter().enumerate() {
            let w = I::read(w.0.as_ptr());
            for row in 0..ROWS {
                let x = I::splat(*x.get_unchecked(row * stride + k));
                sums[row] = I::mul_adds(x, w, sums[row]);
            }
        }
        let mut blocks = [PerOutput([0.0; FLOATS]); ROWS];
        for row in 0..ROWS {
            I::write(sums[row], blocks[row].0.as_mut_ptr());
        }
        blocks
    }
}
