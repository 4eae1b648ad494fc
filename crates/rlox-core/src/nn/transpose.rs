//! Transposing matrices, in tiles of 16 x 16 elements.
#![allow(
    unsafe_code,
    reason = "the compiler does not find the shuffles that transpose 16 x 16 elements"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use super::gemm::{FLOATS, last_of};
use crate::simd::{Instructions, kernel};

kernel! {
    /// Writes the first `n` elements of the `rows` rows of `from`, which are `from_row` elements apart,
    /// as columns to `to`, `[n, to_row]`. Fills the rest of the last sixteen columns with zeros.
    ///
    /// Panics if a slice is shorter than that, or `to` has no room for these columns.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(super) fn transpose(
        rows: usize,
        n: usize,
        from: &[f32],
        from_row: usize,
        to: &mut [f32],
        to_row: usize,
    ) = transpose_body;
}

/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn transpose_body<I: Instructions>(
    rows: usize,
    n: usize,
    from: &[f32],
    from_row: usize,
    to: &mut [f32],
    to_row: usize,
) {
    if rows == 0 || n == 0 {
        return;
    }
    let padded = rows.next_multiple_of(FLOATS);
    let from_last = last_of(rows, from_row, n, 1);
    let to_last = last_of(n, to_row, padded, 1);
    assert!(from_last.is_some_and(|at| at < from.len()));
    assert!(to_row >= padded && to_last.is_some_and(|at| at < to.len()));
    // Sixteen rows of `from` make one vector in each row of `to`.
    for first in (0..rows).step_by(FLOATS) {
        let (from, width) = (&from[first * from_row..], FLOATS.min(rows - first));
        let mut i = 0;
        #[cfg(target_arch = "x86_64")]
        while I::FMA && width == FLOATS && i + FLOATS <= n {
            let (from, to) = (&from[i..], &mut to[i * to_row + first..]);
            // SAFETY: the processor has the instructions of `I`: `WIDE` is AVX-512, other `FMA` AVX2.
            unsafe {
                if I::WIDE {
                    transpose_tile(from, from_row, to, to_row);
                } else {
                    transpose_squares(from, from_row, to, to_row);
                }
            }
            i += FLOATS;
        }
        while i < n {
            let (to, rest) = to[i * to_row + first..][..FLOATS].split_at_mut(width);
            for r in 0..width {
                to[r] = from[r * from_row + i];
            }
            rest.fill(0.0);
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

/// Transposes 16 x 16 elements as four squares of 8 x 8, each by three rounds of shuffles.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transpose_squares(from: &[f32], from_row: usize, to: &mut [f32], to_row: usize) {
    use std::arch::x86_64::{
        _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    const LAST: usize = FLOATS - 1;
    assert!(from.len() >= LAST * from_row + FLOATS && to.len() >= LAST * to_row + FLOATS);
    for (y, x) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
        // SAFETY: the assertion above says that eight elements lie there.
        let row = |r| unsafe { _mm256_loadu_ps(from.as_ptr().add((y + r) * from_row + x)) };
        // Elements 0, 1, 4 and 5 of two rows, interleaved, and elements 2, 3, 6 and 7.
        let pairs = |r| {
            let (a, b) = (row(r), row(r + 1));
            [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)]
        };
        // Of four rows, columns c and c + 4 for c from 0 to 3.
        let fours = |r| {
            let ([a, b], [c, d]) = (pairs(r), pairs(r + 2));
            [
                _mm256_shuffle_ps::<0x44>(a, c),
                _mm256_shuffle_ps::<0xee>(a, c),
                _mm256_shuffle_ps::<0x44>(b, d),
                _mm256_shuffle_ps::<0xee>(b, d),
            ]
        };
        let (above, below) = (fours(0), fours(4));
        for c in 0..4 {
            let low = _mm256_permute2f128_ps::<0x20>(above[c], below[c]);
            let high = _mm256_permute2f128_ps::<0x31>(above[c], below[c]);
            // SAFETY: the assertion above says that there is room for eight elements.
            unsafe {
                _mm256_storeu_ps(to.as_mut_ptr().add((x + c) * to_row + y), low);
                _mm256_storeu_ps(to.as_mut_ptr().add((x + c + 4) * to_row + y), high);
            }
        }
    }
}
