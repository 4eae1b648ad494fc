//! The kernels of a linear layer around the matrix product: transposing weights, dot products for
//! narrow layers, biases, activations, and their derivatives.
#![allow(
    unsafe_code,
    reason = "the compiler does not find the shuffles that transpose 16 x 16 elements"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use super::bfloat16::Precision;
use super::gemm::{FLOATS, Strided};
use super::mlp::grown;
use crate::math::tanh_one;
use crate::simd::{Instructions, kernel};

kernel! {
    /// Writes `weight`, `[out, in]`, transposed to `to`, `[in, ld]`. Elements of `to` beyond the first
    /// `out` of a row are left as they are.
    pub(super) fn transpose(weight: &[f32], n_in: usize, ld: usize, to: &mut [f32]) = transpose_body;
}

/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn transpose_body<I: Instructions>(weight: &[f32], n_in: usize, ld: usize, to: &mut [f32]) {
    let n_out = weight.len() / n_in;
    // Sixteen rows of `weight` make one vector in each row of `to`.
    for block in (0..n_out).step_by(FLOATS) {
        let (rows, width) = (&weight[block * n_in..], FLOATS.min(n_out - block));
        let mut i = 0;
        #[cfg(target_arch = "x86_64")]
        while I::WIDE && width == FLOATS && i + FLOATS <= n_in {
            // SAFETY: the caller has seen that the processor has the instructions of `I`, and on this
            // architecture only those of AVX-512 are `WIDE`.
            unsafe { transpose_tile(&rows[i..], n_in, &mut to[i * ld + block..], ld) };
            i += FLOATS;
        }
        while i < n_in {
            let to = &mut to[i * ld + block..][..width];
            for o in 0..width {
                to[o] = rows[o * n_in + i];
            }
            i += 1;
        }
    }
}

/// Transposes 16 x 16 elements by four perfect shuffles: each interleaves rows r and r + 8, and the
/// results are rows 2r and 2r + 1. Copying single elements takes eight times as long.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn transpose_tile(from: &[f32], from_row: usize, to: &mut [f32], to_row: usize) {
    use std::arch::x86_64::{
        __m512, _mm512_loadu_ps, _mm512_permutex2var_ps, _mm512_set_epi32, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };
    const LAST: usize = FLOATS - 1;
    assert!(from.len() >= LAST * from_row + FLOATS && to.len() >= LAST * to_row + FLOATS);
    let low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    let high = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    let mut rows: [__m512; FLOATS] = [_mm512_setzero_ps(); FLOATS];
    for r in 0..FLOATS {
        // SAFETY: the assertion above says that sixteen elements lie there.
        rows[r] = unsafe { _mm512_loadu_ps(from.as_ptr().add(r * from_row)) };
    }
    for _ in 0..FLOATS.ilog2() {
        let before = rows;
        for r in 0..FLOATS / 2 {
            let (a, b) = (before[r], before[r + FLOATS / 2]);
            rows[2 * r] = _mm512_permutex2var_ps(a, low, b);
            rows[2 * r + 1] = _mm512_permutex2var_ps(a, high, b);
        }
    }
    for r in 0..FLOATS {
        // SAFETY: the assertion above says that there is room for sixteen elements.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr().add(r * to_row), rows[r]) };
    }
}

kernel! {
    /// `y[r, o] = x[r] · weight[o]`. `x` is `[rows, n_in]`, `weight` `[out, n_in]`, `y` `[rows, out]`.
    pub(super) fn dots(x: &[f32], weight: &[f32], n_in: usize, y: &mut [f32]) = dots_body;
}

#[inline(always)]
fn dots_body<I: Instructions>(x: &[f32], weight: &[f32], n_in: usize, y: &mut [f32]) {
    let n_out = weight.len() / n_in;
    let rows = y.len() / n_out;
    for r in 0..rows {
        let x = &x[r * n_in..(r + 1) * n_in];
        let y = &mut y[r * n_out..(r + 1) * n_out];
        let mut o = 0;
        while o + 4 <= n_out {
            y[o..o + 4].copy_from_slice(&dot::<I, 4>(x, &weight[o * n_in..(o + 4) * n_in]));
            o += 4;
        }
        while o < n_out {
            [y[o]] = dot::<I, 1>(x, &weight[o * n_in..(o + 1) * n_in]);
            o += 1;
        }
    }
}

/// `x · w[o]` for `N` rows of `w`. The order of the sum does not depend on `N`, so neither do the
/// results.
#[inline(always)]
fn dot<I: Instructions, const N: usize>(x: &[f32], w: &[f32]) -> [f32; N] {
    let n = x.len();
    let w = &w[..N * n];
    let mut found = [0.0f32; N];
    let mut i = 0;
    if n >= FLOATS {
        let mut sums = [[0.0f32; FLOATS]; N];
        while i + FLOATS <= n {
            let x = &x[i..i + FLOATS];
            for o in 0..N {
                let w = &w[o * n + i..][..FLOATS];
                for l in 0..FLOATS {
                    sums[o][l] = I::mul_add(x[l], w[l], sums[o][l]);
                }
            }
            i += FLOATS;
        }
        let mut quarters = [[0.0f32; 4]; N];
        for o in 0..N {
            for l in 0..4 {
                let sums = &sums[o];
                quarters[o][l] = (sums[l] + sums[l + 4]) + (sums[l + 8] + sums[l + 12]);
            }
        }
        for o in 0..N {
            found[o] = (quarters[o][0] + quarters[o][2]) + (quarters[o][1] + quarters[o][3]);
        }
    }
    while i < n {
        for o in 0..N {
            found[o] = I::mul_add(x[i], w[o * n + i], found[o]);
        }
        i += 1;
    }
    found
}

kernel! {
    /// `y += bias` for each row of `y`, `[rows, out]`; `bias` is `[out]`.
    pub(super) fn add_bias(y: &mut [f32], bias: &[f32]) = add_bias_body;
}

kernel! {
    /// `y = tanh(y + bias)` for each row.
    pub(super) fn add_bias_tanh(y: &mut [f32], bias: &[f32]) = add_bias_tanh_body;
}

kernel! {
    /// `y = max(y + bias, 0)` for each row.
    pub(super) fn add_bias_relu(y: &mut [f32], bias: &[f32]) = add_bias_relu_body;
}

#[inline(always)]
fn add_bias_body<I: Instructions>(y: &mut [f32], bias: &[f32]) {
    for row in y.chunks_exact_mut(bias.len()) {
        for i in 0..bias.len() {
            row[i] += bias[i];
        }
    }
}

#[inline(always)]
fn add_bias_tanh_body<I: Instructions>(y: &mut [f32], bias: &[f32]) {
    for row in y.chunks_exact_mut(bias.len()) {
        for i in 0..bias.len() {
            row[i] = tanh_one::<I>(row[i] + bias[i]);
        }
    }
}

#[inline(always)]
fn add_bias_relu_body<I: Instructions>(y: &mut [f32], bias: &[f32]) {
    for row in y.chunks_exact_mut(bias.len()) {
        for i in 0..bias.len() {
            let y = row[i] + bias[i];
            // NaN stays NaN, as in torch. `y.max(0.0)` would make 0 of it.
            row[i] = if y < 0.0 { 0.0 } else { y };
        }
    }
}

kernel! {
    /// `delta *= 1 - y²`: backpropagation through tanh, whose outputs were `y`.
    pub(super) fn times_tanh_derivative(delta: &mut [f32], y: &[f32]) = times_tanh_derivative_body;
}

kernel! {
    /// `delta = 0` where `y` is 0: backpropagation through ReLU, whose outputs were `y`.
    pub(super) fn times_relu_derivative(delta: &mut [f32], y: &[f32]) = times_relu_derivative_body;
}

#[inline(always)]
fn times_tanh_derivative_body<I: Instructions>(delta: &mut [f32], y: &[f32]) {
    let y = &y[..delta.len()];
    for i in 0..delta.len() {
        delta[i] *= I::mul_add(-y[i], y[i], 1.0);
    }
}

#[inline(always)]
fn times_relu_derivative_body<I: Instructions>(delta: &mut [f32], y: &[f32]) {
    let y = &y[..delta.len()];
    for i in 0..delta.len() {
        delta[i] = if y[i] <= 0.0 { 0.0 } else { delta[i] };
    }
}

kernel! {
    /// `sums[j] += sum over r of values[r, j]`: the gradient by a bias. `sums` is `[out]`, `values`
    /// `[rows, out]`.
    pub(super) fn add_columns(values: &[f32], sums: &mut [f32]) = add_columns_body;
}

#[inline(always)]
fn add_columns_body<I: Instructions>(values: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    let mut j = 0;
    // Sixteen columns at a time, so that their sums stay in registers over all rows.
    while j + FLOATS <= n {
        let mut vector = [0.0f32; FLOATS];
        for row in values.chunks_exact(n) {
            let row = &row[j..j + FLOATS];
            for l in 0..FLOATS {
                vector[l] += row[l];
            }
        }
        for l in 0..FLOATS {
            sums[j + l] += vector[l];
        }
        j += FLOATS;
    }
    for row in values.chunks_exact(n) {
        for i in j..n {
            sums[i] += row[i];
        }
    }
}

/// Whether the gradient by a weight is computed transposed, as `[in, out]`: where the inputs would fill
/// only part of a vector and the outputs fill one.
pub(super) fn is_transposed(n_in: usize, n_out: usize) -> bool {
    n_in < FLOATS && n_out >= FLOATS
}

/// `grad[o, i] += sum over r of delta[r, o] x[r, i]`: the gradient by a weight. `delta` is
/// `[rows, n_out]`, `x` `[rows, n_in]`; `room` is memory kept between calls.
pub(super) fn add_weight_gradient(
    precision: Precision,
    rows: usize,
    delta: &[f32],
    x: &[f32],
    [n_out, n_in]: [usize; 2],
    room: &mut Vec<f32>,
    grad: &mut [f32],
) {
    let columns = |data, n| Strided {
        data,
        row: 1,
        column: n,
    };
    if !is_transposed(n_in, n_out) {
        precision.product(
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
    let transposed = grown(room, n_in * n_out);
    precision.product(
        n_in,
        n_out,
        rows,
        columns(x, n_in),
        delta,
        n_out,
        transposed,
        false,
    );
    for (o, grad) in grad.chunks_exact_mut(n_in).enumerate() {
        for (i, grad) in grad.iter_mut().enumerate() {
            *grad += transposed[i * n_out + o];
        }
    }
}
