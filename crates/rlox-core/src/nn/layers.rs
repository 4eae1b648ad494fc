//! The kernels of a linear layer around the matrix product: dot products for narrow layers, biases,
//! activations, and their derivatives.
#![allow(
    unsafe_code,
    reason = "the compiler does not keep the sums of several dot products in registers"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use std::ops::Range;

use super::bfloat16::Precision;
use super::gemm::{FLOATS, Strided};
use super::mlp::grown;
use crate::math::tanh_one;
use crate::simd::{Instructions, Sixteen, kernel};

kernel! {
    /// `y[r, o] = x[r] · weight[o]`. `x` is `[rows, n_in]`, `weight` `[out, n_in]`, `y` `[rows, out]`.
    pub(super) fn dots(x: &[f32], weight: &[f32], n_in: usize, y: &mut [f32]) = dots_body;
}

/// Four rows at a time, whose sums do not wait for each other.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn dots_body<I: Sixteen>(x: &[f32], weight: &[f32], n_in: usize, y: &mut [f32]) {
    let n_out = weight.len() / n_in;
    let (mut xs, mut ys) = (x.chunks_exact(4 * n_in), y.chunks_exact_mut(4 * n_out));
    // SAFETY: the caller has seen that the processor has the instructions of `I`.
    unsafe {
        for (x, y) in xs.by_ref().zip(ys.by_ref()) {
            dots_of_rows::<I, 4>(x, weight, n_in, y);
        }
        let (x, y) = (xs.remainder(), ys.into_remainder());
        for (x, y) in x.chunks_exact(n_in).zip(y.chunks_exact_mut(n_out)) {
            dots_of_rows::<I, 1>(x, weight, n_in, y);
        }
    }
}

/// [`dots`] of `R` rows.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn dots_of_rows<I: Sixteen, const R: usize>(
    x: &[f32],
    weight: &[f32],
    n_in: usize,
    y: &mut [f32],
) {
    let n_out = y.len() / R;
    let mut o = 0;
    while o < n_out {
        let (weight, y) = (&weight[o * n_in..], &mut y[o..]);
        // SAFETY: the caller has seen that the processor has the instructions of `I`.
        o += unsafe {
            match n_out - o {
                4.. => tile_of_dots::<I, R, 4>(x, weight, n_in, y, n_out),
                2.. => tile_of_dots::<I, R, 2>(x, weight, n_in, y, n_out),
                _ => tile_of_dots::<I, R, 1>(x, weight, n_in, y, n_out),
            }
        };
    }
}

/// `y[r, o] = x[r] · w[o]` for `R` rows of `x` and `N` of `w`, of `n` elements each; returns N. The rows
/// of `y` are `ldy` elements apart. The order of a sum depends on neither R nor N, so neither do the
/// results.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn tile_of_dots<I: Sixteen, const R: usize, const N: usize>(
    x: &[f32],
    w: &[f32],
    n: usize,
    y: &mut [f32],
    ldy: usize,
) -> usize {
    assert!(x.len() >= R * n && w.len() >= N * n);
    let mut totals = [[0.0; N]; R];
    let mut i = 0;
    if n >= FLOATS {
        // SAFETY: the caller has seen that the processor has the instructions of `I`. The assertion says
        // that sixteen floats lie at i <= n - 16 of each row.
        unsafe {
            let mut sums = [[I::splat(0.0); N]; R];
            while i + FLOATS <= n {
                for o in 0..N {
                    let w = I::read(w.as_ptr().add(o * n + i));
                    for r in 0..R {
                        let x = I::read(x.as_ptr().add(r * n + i));
                        sums[r][o] = I::mul_adds(x, w, sums[r][o]);
                    }
                }
                i += FLOATS;
            }
            for r in 0..R {
                for o in 0..N {
                    let mut lanes = [0.0; FLOATS];
                    I::write(sums[r][o], lanes.as_mut_ptr());
                    totals[r][o] = sum_of(lanes);
                }
            }
        }
    }
    while i < n {
        for r in 0..R {
            for o in 0..N {
                totals[r][o] = I::mul_add(x[r * n + i], w[o * n + i], totals[r][o]);
            }
        }
        i += 1;
    }
    for r in 0..R {
        y[r * ldy..][..N].copy_from_slice(&totals[r]);
    }
    N
}

/// The sum of sixteen lanes, by halving.
#[inline(always)]
fn sum_of(lanes: [f32; FLOATS]) -> f32 {
    let mut quarters = [0.0; 4];
    for l in 0..4 {
        quarters[l] = (lanes[l] + lanes[l + 4]) + (lanes[l + 8] + lanes[l + 12]);
    }
    (quarters[0] + quarters[2]) + (quarters[1] + quarters[3])
}

/// What a pass of a network does with the result of a product, element by element.
#[derive(Clone, Copy)]
pub(super) enum Epilogue<'a> {
    /// Nothing.
    None,
    /// `y += bias` in each row; `bias` has an element for each column.
    Bias(&'a [f32]),
    /// `y = tanh(y + bias)`.
    BiasTanh(&'a [f32]),
    /// `y = max(y + bias, 0)`.
    BiasRelu(&'a [f32]),
    /// `y *= 1 - of²`: backpropagation through tanh, whose outputs were `of`, `[rows, columns]`.
    TanhDerivative(&'a [f32]),
    /// `y = 0` where `of` is 0: backpropagation through ReLU, whose outputs were `of`.
    ReluDerivative(&'a [f32]),
}

impl Epilogue<'_> {
    /// Does it to these rows and columns of the result `c`, whose rows have `n` elements.
    pub(super) fn apply(self, c: &mut [f32], n: usize, rows: Range<usize>, columns: Range<usize>) {
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let part = rows.start * n + columns.start..(rows.end - 1) * n + columns.end;
        let y = &mut c[part.clone()];
        // Whole rows side by side are one row where no column has a number of its own.
        let whole = columns.len() == n;
        let (ld, width) = if whole {
            (y.len(), y.len())
        } else {
            (n, columns.len())
        };
        match self {
            Self::None => {}
            Self::Bias(bias) => add_bias(y, n, &bias[columns]),
            Self::BiasTanh(bias) => add_bias_tanh(y, n, &bias[columns]),
            Self::BiasRelu(bias) => add_bias_relu(y, n, &bias[columns]),
            Self::TanhDerivative(of) => times_tanh_derivative(y, &of[part], ld, width),
            Self::ReluDerivative(of) => times_relu_derivative(y, &of[part], ld, width),
        }
    }
}

kernel! {
    /// `y += bias` in each row; rows of `y` are `ld` apart and as long as `bias`.
    fn add_bias(y: &mut [f32], ld: usize, bias: &[f32]) = add_bias_body;
}

kernel! {
    /// `y = tanh(y + bias)`, as [`add_bias`].
    fn add_bias_tanh(y: &mut [f32], ld: usize, bias: &[f32]) = add_bias_tanh_body;
}

kernel! {
    /// `y = max(y + bias, 0)`, as [`add_bias`].
    fn add_bias_relu(y: &mut [f32], ld: usize, bias: &[f32]) = add_bias_relu_body;
}

#[inline(always)]
fn add_bias_body<I: Instructions>(y: &mut [f32], ld: usize, bias: &[f32]) {
    for row in y.chunks_mut(ld) {
        let row = &mut row[..bias.len()];
        for i in 0..bias.len() {
            row[i] += bias[i];
        }
    }
}

#[inline(always)]
fn add_bias_tanh_body<I: Instructions>(y: &mut [f32], ld: usize, bias: &[f32]) {
    for row in y.chunks_mut(ld) {
        let row = &mut row[..bias.len()];
        for i in 0..bias.len() {
            row[i] = tanh_one::<I>(row[i] + bias[i]);
        }
    }
}

#[inline(always)]
fn add_bias_relu_body<I: Instructions>(y: &mut [f32], ld: usize, bias: &[f32]) {
    for row in y.chunks_mut(ld) {
        let row = &mut row[..bias.len()];
        for i in 0..bias.len() {
            let y = row[i] + bias[i];
            // NaN stays NaN, as in torch. `y.max(0.0)` would make 0 of it.
            row[i] = if y < 0.0 { 0.0 } else { y };
        }
    }
}

kernel! {
    /// `delta *= 1 - y²`; rows of both are `ld` apart, and `width` elements long.
    fn times_tanh_derivative(delta: &mut [f32], y: &[f32], ld: usize, width: usize)
        = times_tanh_derivative_body;
}

kernel! {
    /// `delta = 0` where `y` is 0, as [`times_tanh_derivative`].
    fn times_relu_derivative(delta: &mut [f32], y: &[f32], ld: usize, width: usize)
        = times_relu_derivative_body;
}

#[inline(always)]
fn times_tanh_derivative_body<I: Instructions>(
    delta: &mut [f32],
    y: &[f32],
    ld: usize,
    width: usize,
) {
    for (delta, y) in delta.chunks_mut(ld).zip(y.chunks(ld)) {
        let (delta, y) = (&mut delta[..width], &y[..width]);
        for i in 0..width {
            delta[i] *= I::mul_add(-y[i], y[i], 1.0);
        }
    }
}

#[inline(always)]
fn times_relu_derivative_body<I: Instructions>(
    delta: &mut [f32],
    y: &[f32],
    ld: usize,
    width: usize,
) {
    for (delta, y) in delta.chunks_mut(ld).zip(y.chunks(ld)) {
        let (delta, y) = (&mut delta[..width], &y[..width]);
        for i in 0..width {
            delta[i] = if y[i] <= 0.0 { 0.0 } else { delta[i] };
        }
    }
}

kernel! {
    /// `sums[j] = sum over r of values[r, j]`: the gradient by a bias. `sums` is `[out]`, `values`
    /// `[rows, out]`.
    pub(super) fn sum_columns(values: &[f32], sums: &mut [f32]) = sum_columns_body;
}

#[inline(always)]
fn sum_columns_body<I: Instructions>(values: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    let mut j = 0;
    // Whole vectors of columns, whose sums stay in registers over all rows. Each sum waits for that of
    // the row before, so four vectors at a time.
    while j + 4 * FLOATS <= n {
        sum_vectors::<4>(values, j, sums);
        j += 4 * FLOATS;
    }
    while j + FLOATS <= n {
        sum_vectors::<1>(values, j, sums);
        j += FLOATS;
    }
    sums[j..].fill(0.0);
    for row in values.chunks_exact(n) {
        for i in j..n {
            sums[i] += row[i];
        }
    }
}

/// [`sum_columns`] for the V vectors of columns from `j` on.
#[inline(always)]
fn sum_vectors<const V: usize>(values: &[f32], j: usize, sums: &mut [f32]) {
    let mut vectors = [[0.0f32; FLOATS]; V];
    for row in values.chunks_exact(sums.len()) {
        let row = &row[j..j + V * FLOATS];
        for v in 0..V {
            for l in 0..FLOATS {
                vectors[v][l] += row[v * FLOATS + l];
            }
        }
    }
    sums[j..j + V * FLOATS].copy_from_slice(vectors.as_flattened());
}

/// Whether the gradient by a weight is computed transposed, as `[in, out]`: where the inputs would fill
/// only part of a vector and the outputs fill one.
pub(super) fn is_transposed(n_in: usize, n_out: usize) -> bool {
    n_in < FLOATS && n_out >= FLOATS
}

/// `grad[o, i] = sum over r of delta[r, o] x[r, i]`: the gradient by a weight. `delta` is
/// `[rows, n_out]`, `x` `[rows, n_in]`; `room` is memory kept between calls.
pub(super) fn weight_gradient(
    precision: Precision,
    rows: usize,
    delta: &[f32],
    x: &[f32],
    [n_out, n_in]: [usize; 2],
    room: &mut Vec<f32>,
    grad: &mut [f32],
) {
    let none = Epilogue::None;
    if !is_transposed(n_in, n_out) {
        let (a, b) = (Strided::columns(delta, n_out), Strided::rows(x, n_in));
        precision.product([n_out, n_in, rows], a, b, grad, none);
        return;
    }
    let transposed = grown(room, n_in * n_out);
    let (a, b) = (Strided::columns(x, n_in), Strided::rows(delta, n_out));
    precision.product([n_in, n_out, rows], a, b, transposed, none);
    for (o, grad) in grad.chunks_exact_mut(n_in).enumerate() {
        for (i, grad) in grad.iter_mut().enumerate() {
            *grad = transposed[i * n_out + o];
        }
    }
}
