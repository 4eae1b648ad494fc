//! What a linear layer and its activation do around the matrix product.

use super::gemm::{LANES, Strided, gemm};
use super::math::tanh_one;
use super::simd::{Instructions, kernel};

/// Appends `weight`, `[out, in]`, to `to` as `[in, ld]`, its rows filled up with zeros.
pub(super) fn transpose(weight: &[f32], n_in: usize, ld: usize, to: &mut Vec<f32>) {
    let start = to.len();
    to.resize(start + n_in * ld, 0.0);
    let to = &mut to[start..];
    // Sixteen rows at a time: they are read side by side, and written a vector at a time.
    for (block, rows) in weight.chunks(LANES * n_in).enumerate() {
        for (i, to) in to.chunks_exact_mut(ld).enumerate() {
            let to = &mut to[block * LANES..(block + 1) * LANES];
            for (to, row) in to.iter_mut().zip(rows.chunks_exact(n_in)) {
                *to = row[i];
            }
        }
    }
}

kernel! {
    /// `y[r, o] = x[r] · weight[o]`; `x` is `[rows, n_in]`, `weight` `[out, n_in]`.
    pub(super) fn dots(x: &[f32], weight: &[f32], n_in: usize, y: &mut [f32]) = dots_body;
}

#[inline(always)]
fn dots_body<I: Instructions>(x: &[f32], weight: &[f32], n_in: usize, y: &mut [f32]) {
    let n_out = weight.len() / n_in;
    for (x, y) in x.chunks_exact(n_in).zip(y.chunks_exact_mut(n_out)) {
        for (w, y) in weight.chunks_exact(n_in).zip(y) {
            *y = dot::<I>(x, w);
        }
    }
}

#[inline(always)]
fn dot<I: Instructions>(x: &[f32], w: &[f32]) -> f32 {
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (w, w_rest) = w.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, w) in x.iter().zip(w) {
        for ((sum, &x), &w) in sums.iter_mut().zip(x).zip(w) {
            *sum = I::mul_add(x, w, *sum);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    x_rest
        .iter()
        .zip(w_rest)
        .fold(sums[0], |sum, (&x, &w)| I::mul_add(x, w, sum))
}

kernel! {
    /// `y += bias` in each row.
    pub(super) fn add_bias(y: &mut [f32], bias: &[f32]) = add_bias_body;
}

kernel! {
    /// `y = tanh(y + bias)` in each row.
    pub(super) fn add_bias_tanh(y: &mut [f32], bias: &[f32]) = add_bias_tanh_body;
}

kernel! {
    /// `y = max(y + bias, 0)` in each row.
    pub(super) fn add_bias_relu(y: &mut [f32], bias: &[f32]) = add_bias_relu_body;
}

#[inline(always)]
fn add_bias_body<I: Instructions>(y: &mut [f32], bias: &[f32]) {
    each_in_rows(y, bias, |y, bias| y + bias);
}

#[inline(always)]
fn add_bias_tanh_body<I: Instructions>(y: &mut [f32], bias: &[f32]) {
    each_in_rows(y, bias, |y, bias| tanh_one::<I>(y + bias));
}

#[inline(always)]
fn add_bias_relu_body<I: Instructions>(y: &mut [f32], bias: &[f32]) {
    each_in_rows(y, bias, |y, bias| {
        let y = y + bias;
        // NaN stays NaN, as in torch; `max` would hide it.
        if y < 0.0 { 0.0 } else { y }
    });
}

#[inline(always)]
fn each_in_rows(y: &mut [f32], bias: &[f32], f: impl Fn(f32, f32) -> f32) {
    for row in y.chunks_exact_mut(bias.len()) {
        for (y, &bias) in row.iter_mut().zip(bias) {
            *y = f(*y, bias);
        }
    }
}

kernel! {
    /// `delta *= 1 - y²`: through a tanh whose outputs were `y`.
    pub(super) fn times_tanh_derivative(delta: &mut [f32], y: &[f32]) = times_tanh_derivative_body;
}

kernel! {
    /// `delta = 0` where `y`, the outputs of a ReLU, are 0.
    pub(super) fn times_relu_derivative(delta: &mut [f32], y: &[f32]) = times_relu_derivative_body;
}

#[inline(always)]
fn times_tanh_derivative_body<I: Instructions>(delta: &mut [f32], y: &[f32]) {
    for (delta, &y) in delta.iter_mut().zip(y) {
        *delta *= I::mul_add(-y, y, 1.0);
    }
}

#[inline(always)]
fn times_relu_derivative_body<I: Instructions>(delta: &mut [f32], y: &[f32]) {
    for (delta, &y) in delta.iter_mut().zip(y) {
        *delta = if y <= 0.0 { 0.0 } else { *delta };
    }
}

kernel! {
    /// `sums += ` the sum over the rows of `values`.
    pub(super) fn add_columns(values: &[f32], sums: &mut [f32]) = add_columns_body;
}

#[inline(always)]
fn add_columns_body<I: Instructions>(values: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    let mut j = 0;
    // Columns a vector at a time, so that their sums stay in a register.
    while j + LANES <= n {
        let mut sum = [0.0f32; LANES];
        for row in values.chunks_exact(n) {
            for (sum, value) in sum.iter_mut().zip(&row[j..j + LANES]) {
                *sum += value;
            }
        }
        for (to, sum) in sums[j..].iter_mut().zip(sum) {
            *to += sum;
        }
        j += LANES;
    }
    for row in values.chunks_exact(n) {
        for (sum, value) in sums[j..].iter_mut().zip(&row[j..]) {
            *sum += value;
        }
    }
}

/// `grad[o, i] += sum over r of delta[r, o] x[r, i]`; `delta` is `[rows, n_out]`, `x` `[rows, n_in]`.
pub(super) fn add_weight_gradient(
    rows: usize,
    delta: &[f32],
    x: &[f32],
    n_out: usize,
    n_in: usize,
    grad: &mut [f32],
) {
    let columns = |data, n| Strided {
        data,
        row: 1,
        column: n,
    };
    if n_in >= LANES || n_out < LANES {
        gemm(
            n_out,
            n_in,
            rows,
            columns(delta, n_out),
            x,
            n_in,
            grad,
            true,
        );
        return;
    }
    // A vector of inputs would be mostly empty, one of outputs is not: the transposed product.
    let mut transposed = vec![0.0; n_in * n_out];
    gemm(
        n_in,
        n_out,
        rows,
        columns(x, n_in),
        delta,
        n_out,
        &mut transposed,
        false,
    );
    for (o, grad) in grad.chunks_exact_mut(n_in).enumerate() {
        for (i, grad) in grad.iter_mut().enumerate() {
            *grad += transposed[i * n_out + o];
        }
    }
}
