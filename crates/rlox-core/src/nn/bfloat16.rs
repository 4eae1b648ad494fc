//! Products whose factors are rounded to bfloat16, and whose sums are float32: R20.
//!
//! bfloat16 is a float32 without its lower 16 bits. AVX512-BF16 has an instruction that adds the
//! products of two pairs to each of sixteen sums, where AVX-512 adds one product. So both factors are
//! packed in pairs: the elements 2p and 2p + 1 of the dimension that is summed over lie in one word.
//! A processor without it computes the same from rounded floats, which is slower than float32; it is
//! for tests.
#![allow(
    unsafe_code,
    reason = "a bounds check per element of `a` would cost as much as the arithmetic"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

#[cfg(target_arch = "x86_64")]
use super::gemm::FLOATS;
use super::gemm::{Strided, check, gemm};
use super::layers::Epilogue;
#[cfg(target_arch = "x86_64")]
use super::transpose::transpose;

/// The numbers that products are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precision {
    /// float32.
    #[default]
    Float32,
    /// Factors of bfloat16, rounded to nearest, ties to even; sums of float32. Products of fewer than
    /// [`LEAST`] rows, columns or terms stay float32.
    Bfloat16,
    /// The same by AMX, with the sums in another order; without AMX as [`Self::Bfloat16`].
    Bfloat16ByAmx,
}

/// For fewer rows, columns or terms, packing costs more than it brings.
const LEAST: usize = 32;

/// Whether the processor has an instruction for products of bfloat16, and may use it.
pub fn has_bfloat16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        crate::simd::level() == crate::simd::Level::Avx512 && is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the processor has AMX for bfloat16 as well, and this process may use it.
pub fn has_amx() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        has_bfloat16() && *super::amx::GRANTED
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl Precision {
    /// [`gemm`] in this precision.
    ///
    /// Panics if a factor lies neither in rows nor in columns, or a slice is shorter than the shapes say.
    pub(super) fn product(
        self,
        [m, n, k]: [usize; 3],
        a: Strided<'_>,
        b: Strided<'_>,
        c: &mut [f32],
        epilogue: Epilogue<'_>,
    ) {
        if self == Self::Float32 || m.min(n).min(k) < LEAST {
            return gemm(m, n, k, a, b, c, epilogue);
        }
        check([m, n, k], a, b, c);
        assert!(
            a.row == 1 || a.column == 1,
            "a is neither in rows nor in columns"
        );
        #[cfg(target_arch = "x86_64")]
        if self == Self::Bfloat16ByAmx && has_amx() {
            // SAFETY: the processor has the instructions, and the process the registers.
            return unsafe { super::amx::product(m, n, k, a, b, c, epilogue) };
        }
        #[cfg(target_arch = "x86_64")]
        if has_bfloat16() {
            let mut rows;
            let b = if b.column == 1 {
                b
            } else {
                let ld = n.next_multiple_of(FLOATS);
                rows = vec![0.0; k * ld];
                transpose(n, k, b.data, b.column, &mut rows, ld);
                Strided::rows(&rows, ld)
            };
            // SAFETY: the processor has the instructions.
            return unsafe { x86::product(m, n, k, a, b, c, epilogue) };
        }
        let rounded = |values: &[f32]| values.iter().map(|&x| rounded(x)).collect::<Vec<_>>();
        let (of_a, of_b) = (rounded(a.data), rounded(b.data));
        let (a, b) = (Strided { data: &of_a, ..a }, Strided { data: &of_b, ..b });
        gemm(m, n, k, a, b, c, epilogue);
    }
}

/// The nearest bfloat16, ties to even, as a float32. A NaN stays one.
fn rounded(x: f32) -> f32 {
    let bits = x.to_bits();
    if x.is_nan() {
        return f32::from_bits((bits | 0x0040_0000) & 0xffff_0000); // quiet, as the processor makes it
    }
    f32::from_bits(bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512, __m512bh, __m512i, _mm512_add_ps, _mm512_cvtepu16_epi32,
        _mm512_cvtne2ps_pbh, _mm512_cvtneps_pbh, _mm512_dpbf16_ps, _mm512_loadu_ps,
        _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi32, _mm512_setzero_ps,
        _mm512_slli_epi32, _mm512_storeu_ps, _mm512_storeu_si512,
    };
    use std::mem::transmute;

    use super::rounded;
    use crate::nn::gemm::{FLOATS, Strided};
    use crate::nn::layers::Epilogue;

    /// Terms of a block at most. A panel of a block has 64 columns, and stays in the first-level cache.
    const K_BLOCK: usize = 128;
    /// Vectors in a row of a panel, and rows of the largest tile.
    const VECTORS: usize = 4;
    const ROWS: usize = 6;
    const WIDTH: usize = VECTORS * FLOATS;

    /// [`super::gemm`] with factors of bfloat16.
    ///
    /// `a` lies in rows or in columns and `b` in rows, no dimension is 0, and no slice is shorter than the
    /// shapes say.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) fn product(
        m: usize,
        n: usize,
        k: usize,
        a: Strided<'_>,
        b: Strided<'_>,
        c: &mut [f32],
        epilogue: Epilogue<'_>,
    ) {
        let most = K_BLOCK.min(k).div_ceil(2);
        let (mut words, mut panel) = (vec![0; m * most], vec![0; most * WIDTH]);
        let zeros = vec![0.0; m.max(WIDTH)];
        for start in (0..k).step_by(K_BLOCK) {
            let depth = K_BLOCK.min(k - start);
            let pairs = depth.div_ceil(2);
            // The words of `a`: row after row if its rows lie side by side, otherwise pair after pair.
            let by_rows = a.column == 1;
            if by_rows {
                for i in 0..m {
                    let row = &a.data[i * a.row + start..][..depth];
                    pair_neighbours(row, &mut words[i * pairs..(i + 1) * pairs]);
                }
            } else {
                let columns = &a.data[start * a.column..];
                pair_rows(columns, a.column, depth, &zeros[..m], &mut words, m);
            }
            let (row, column) = if by_rows { (pairs, 1) } else { (1, m) };
            let adds = start > 0;
            for j in (0..n).step_by(WIDTH) {
                let used = WIDTH.min(n - j);
                let rows = &b.data[start * b.row + j..];
                pair_rows(rows, b.row, depth, &zeros[..used], &mut panel, WIDTH);
                let mut i = 0;
                while i < m {
                    let words = &words[i * row..];
                    let to = &mut c[i * n + j..];
                    let rows = match m - i {
                        ROWS.. => {
                            tile::<ROWS>(words, row, column, &panel, pairs, to, n, used, adds)
                        }
                        4.. => tile::<4>(words, row, column, &panel, pairs, to, n, used, adds),
                        2.. => tile::<2>(words, row, column, &panel, pairs, to, n, used, adds),
                        _ => tile::<1>(words, row, column, &panel, pairs, to, n, used, adds),
                    };
                    if start + depth == k {
                        epilogue.apply(c, n, i..i + rows, j..j + used);
                    }
                    i += rows;
                }
            }
        }
    }

    /// One word: `low` and `high`, rounded.
    fn word(low: f32, high: f32) -> u32 {
        rounded(low).to_bits() >> 16 | rounded(high).to_bits()
    }

    /// Words of neighbours: `to[p]` has `from[2 * p]` and `from[2 * p + 1]`, or 0 beyond the end.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(in crate::nn) fn pair_neighbours(from: &[f32], to: &mut [u32]) {
        let (whole, rest) = from.as_chunks::<{ 2 * FLOATS }>();
        let (to_whole, to_rest) = to.split_at_mut(whole.len() * FLOATS);
        for (from, to) in whole.iter().zip(to_whole.as_chunks_mut::<FLOATS>().0) {
            // SAFETY: 32 floats lie at `from`, and there is room for sixteen words.
            unsafe {
                let low = _mm512_loadu_ps(from.as_ptr());
                let high = _mm512_loadu_ps(from.as_ptr().add(FLOATS));
                let words: __m512i = transmute(_mm512_cvtne2ps_pbh(high, low));
                _mm512_storeu_si512(to.as_mut_ptr().cast(), words);
            }
        }
        for (from, to) in rest.chunks(2).zip(to_rest) {
            *to = word(from[0], from.get(1).copied().unwrap_or(0.0));
        }
    }

    /// Words of neighbouring rows: row p of `to` has rows 2p and 2p + 1 of `depth` rows of `from`, the
    /// last of which is paired with `zeros` if there is no next one. Rows are as long as `zeros`, and
    /// `row` and `to_row` apart.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(in crate::nn) fn pair_rows(
        from: &[f32],
        row: usize,
        depth: usize,
        zeros: &[f32],
        to: &mut [u32],
        to_row: usize,
    ) {
        let n = zeros.len();
        for (p, q) in (0..depth).step_by(2).enumerate() {
            let next = if q + 1 < depth {
                &from[(q + 1) * row..][..n]
            } else {
                zeros
            };
            interleave(&from[q * row..][..n], next, &mut to[p * to_row..][..n]);
        }
    }

    /// Words of two rows: `to[j]` has `low[j]` and `high[j]`. All have the same length.
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn interleave(low: &[f32], high: &[f32], to: &mut [u32]) {
        let (lows, low_rest) = low.as_chunks::<FLOATS>();
        let (highs, high_rest) = high.as_chunks::<FLOATS>();
        let (whole, rest) = to.as_chunks_mut::<FLOATS>();
        for ((low, high), to) in lows.iter().zip(highs).zip(whole) {
            // SAFETY: sixteen floats lie at each, and there is room for sixteen words.
            unsafe {
                let low: __m256i = transmute(_mm512_cvtneps_pbh(_mm512_loadu_ps(low.as_ptr())));
                let high: __m256i = transmute(_mm512_cvtneps_pbh(_mm512_loadu_ps(high.as_ptr())));
                let high = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(high));
                let words = _mm512_or_si512(_mm512_cvtepu16_epi32(low), high);
                _mm512_storeu_si512(to.as_mut_ptr().cast(), words);
            }
        }
        for ((low, high), to) in low_rest.iter().zip(high_rest).zip(rest) {
            *to = word(*low, *high);
        }
    }

    /// R rows of a panel's columns, `used` of which are written to `c`, whose rows are `ldc` apart.
    /// Returns R. The word of row r and pair p is `words[r * row + p * column]`.
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[expect(clippy::too_many_arguments, reason = "where three matrices lie")]
    fn tile<const R: usize>(
        words: &[u32],
        row: usize,
        column: usize,
        panel: &[u32],
        pairs: usize,
        c: &mut [f32],
        ldc: usize,
        used: usize,
        accumulate: bool,
    ) -> usize {
        assert!(words.len() > (R - 1) * row + (pairs - 1) * column);
        assert!(panel.len() >= pairs * WIDTH);
        assert!(c.len() >= (R - 1) * ldc + used);
        let mut sums = [[_mm512_setzero_ps(); VECTORS]; R];
        // SAFETY: the first two assertions.
        unsafe {
            for p in 0..pairs {
                let nothing = transmute::<__m512i, __m512bh>(_mm512_set1_epi32(0));
                let mut b = [nothing; VECTORS];
                for v in 0..VECTORS {
                    let at = panel.as_ptr().add(p * WIDTH + v * FLOATS);
                    b[v] = transmute::<__m512i, __m512bh>(_mm512_loadu_si512(at.cast()));
                }
                for r in 0..R {
                    let word = *words.get_unchecked(r * row + p * column);
                    let a = transmute::<__m512i, __m512bh>(_mm512_set1_epi32(word as i32));
                    for v in 0..VECTORS {
                        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], a, b[v]);
                    }
                }
            }
        }
        for r in 0..R {
            let to = &mut c[r * ldc..][..used];
            let (whole, rest) = to.as_chunks_mut::<FLOATS>();
            for (v, to) in whole.iter_mut().enumerate() {
                let sum = sums[r][v];
                // SAFETY: sixteen floats lie at `to`.
                unsafe {
                    let before = _mm512_loadu_ps(to.as_ptr());
                    let sum = if accumulate {
                        _mm512_add_ps(sum, before)
                    } else {
                        sum
                    };
                    _mm512_storeu_ps(to.as_mut_ptr(), sum);
                }
            }
            if !rest.is_empty() {
                // SAFETY: a vector is sixteen floats.
                let last: [f32; FLOATS] = unsafe { transmute::<__m512, _>(sums[r][used / FLOATS]) };
                for (to, sum) in rest.iter_mut().zip(last) {
                    *to = if accumulate { *to + sum } else { sum };
                }
            }
        }
        R
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn the_upper_half_of_a_rounded_number_is_all_of_it_and_a_nan_stays_one() {
        for bits in [0x7f80_0001, 0xff80_ffff, 0x7fc0_0000, 0xffff_ffff] {
            let half = rounded(f32::from_bits(bits));
            assert!(half.is_nan(), "{bits:x}");
            assert_eq!(half.to_bits() & 0xffff, 0, "{bits:x}");
        }
        // A tie goes to the even neighbour.
        let tied = [(257.0 / 256.0, 1.0), (259.0 / 256.0, 260.0 / 256.0)];
        for (x, half) in tied.into_iter().chain([(f32::MAX, f32::INFINITY)]) {
            assert_eq!(rounded(x), half);
        }
    }
}
