//! Products of small matrices, float32, row-major, one thread.
//!
//! A micro-kernel keeps a tile of the result in registers while it runs over k: one vector load of
//! `b` for every column of registers, one broadcast of `a` for every row. `b` is read in place where
//! its rows are no wider than a tile, else packed, a panel of [`K_BLOCK`] rows at a time, so that it
//! stays in the first-level cache.
#![allow(
    unsafe_code,
    reason = "a bounds check per element of `a` would cost as much as the arithmetic"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use crate::simd::{Sixteen, kernel};

/// Elements in the vectors that the code is written for; narrower registers take several.
pub(super) const FLOATS: usize = 16;
/// Rows of `b` that one pass goes over.
const K_BLOCK: usize = 128;
/// Widest panel, in vectors.
const MAX_VECTORS: usize = 4;
/// Elements of the largest tile.
const MAX_TILE: usize = 24 * FLOATS;

/// A matrix `[rows, columns]` to be read element by element.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    /// Its elements.
    pub(super) data: &'a [f32],
    /// From one row to the next.
    pub(super) row: usize,
    /// From one column to the next.
    pub(super) column: usize,
}

/// Where the last element of a matrix of at least one row and one column lies, from one `row` and
/// from one `column` to the next; None where no memory is as long.
fn last_of(rows: usize, row: usize, columns: usize, column: usize) -> Option<usize> {
    let in_row = (columns - 1).checked_mul(column)?;
    (rows - 1).checked_mul(row)?.checked_add(in_row)
}

kernel! {
    /// `c = a b`, or `c += a b` if `accumulate`; `a` is `[m, k]`, `b` `[k, n]` with rows `ldb` apart,
    /// `c` `[m, n]` with rows `n` apart.
    #[expect(clippy::too_many_arguments, reason = "the interface of BLAS")]
    pub(super) fn gemm(
        m: usize,
        n: usize,
        k: usize,
        a: Strided<'_>,
        b: &[f32],
        ldb: usize,
        c: &mut [f32],
        accumulate: bool,
    ) = gemm_body;
}

/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the interface of BLAS")]
unsafe fn gemm_body<I: Sixteen>(
    m: usize,
    n: usize,
    k: usize,
    a: Strided<'_>,
    b: &[f32],
    ldb: usize,
    c: &mut [f32],
    accumulate: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !accumulate {
            c[..m * n].fill(0.0);
        }
        return;
    }
    let a_last = last_of(m, a.row, k, a.column);
    assert!(a_last.is_some_and(|at| at < a.data.len()), "a is too short");
    let b_last = last_of(k, ldb, n, 1);
    assert!(
        ldb >= n && b_last.is_some_and(|at| at < b.len()),
        "b is too short"
    );
    let c_last = last_of(m, n, n, 1);
    assert!(c_last.is_some_and(|at| at < c.len()), "c is too short");
    let mut packed = Vec::new();
    let mut edge = vec![
        0.0;
        if n.is_multiple_of(FLOATS) {
            0
        } else {
            MAX_TILE
        }
    ];
    for start in (0..k).step_by(K_BLOCK) {
        let depth = K_BLOCK.min(k - start);
        let a = Strided {
            data: &a.data[start * a.column..],
            ..a
        };
        let block = Block {
            m,
            n,
            depth,
            a,
            accumulate: accumulate || start > 0,
        };
        let b = &b[start * ldb..];
        let mut j = 0;
        while j < n {
            let left = n - j;
            let vectors = match left.div_ceil(FLOATS) {
                4.. if I::WIDE => 4,
                2.. if I::WIDE => 2,
                _ => 1,
            };
            let width = vectors * FLOATS;
            // Reading past a row's end is harmless, past the matrix's is not.
            let in_place = ldb <= MAX_VECTORS * FLOATS && b.len() >= (depth - 1) * ldb + j + width;
            let (panel, ld) = if in_place {
                (&b[j..], ldb)
            } else {
                pack(b, ldb, j, left.min(width), width, depth, &mut packed);
                (packed.as_slice(), width)
            };
            // SAFETY: the caller's.
            unsafe {
                match vectors {
                    4 => block.rows::<I, 6, 4>(panel, ld, j, c, &mut edge),
                    2 => block.rows::<I, 12, 2>(panel, ld, j, c, &mut edge),
                    _ if I::WIDE => block.rows::<I, 12, 1>(panel, ld, j, c, &mut edge),
                    _ => block.rows::<I, 6, 1>(panel, ld, j, c, &mut edge),
                }
            }
            j += width;
        }
    }
}

/// Columns `j..j + used` of `depth` rows of `b`, side by side and zero up to `width`.
#[inline(always)]
fn pack(
    b: &[f32],
    ldb: usize,
    j: usize,
    used: usize,
    width: usize,
    depth: usize,
    packed: &mut Vec<f32>,
) {
    packed.resize(depth * width, 0.0);
    for p in 0..depth {
        let to = &mut packed[p * width..(p + 1) * width];
        to[..used].copy_from_slice(&b[p * ldb + j..][..used]);
        to[used..].fill(0.0);
    }
}

/// The part of a product over `depth` of the k.
struct Block<'a> {
    m: usize,
    n: usize,
    depth: usize,
    a: Strided<'a>,
    accumulate: bool,
}

impl Block<'_> {
    /// One panel of columns from `j` on: tiles of R rows, then of fewer. Has room for a tile in `edge`.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    unsafe fn rows<I: Sixteen, const R: usize, const V: usize>(
        &self,
        panel: &[f32],
        ld: usize,
        j: usize,
        c: &mut [f32],
        edge: &mut [f32],
    ) {
        let mut i = 0;
        while i < self.m {
            // SAFETY: the caller's.
            i += unsafe {
                match self.m - i {
                    left if left >= R => self.part::<I, R, V>(panel, ld, i, j, c, edge),
                    4.. => self.part::<I, 4, V>(panel, ld, i, j, c, edge),
                    2.. => self.part::<I, 2, V>(panel, ld, i, j, c, edge),
                    _ => self.part::<I, 1, V>(panel, ld, i, j, c, edge),
                }
            };
        }
    }

    /// Rows `i..i + R` of the panel's columns, as far as there are so many, if not by way of `edge`; R.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    unsafe fn part<I: Sixteen, const R: usize, const V: usize>(
        &self,
        panel: &[f32],
        ld: usize,
        i: usize,
        j: usize,
        c: &mut [f32],
        edge: &mut [f32],
    ) -> usize {
        let width = V * FLOATS;
        let used = (self.n - j).min(width);
        if used == width {
            let c = &mut c[i * self.n + j..];
            // SAFETY: the caller's.
            unsafe { self.tile::<I, R, V>(panel, ld, i, c, self.n, self.accumulate) };
            return R;
        }
        // SAFETY: the caller's.
        unsafe { self.tile::<I, R, V>(panel, ld, i, edge, width, false) };
        for r in 0..R {
            let start = (i + r) * self.n + j;
            let (to, sums) = (&mut c[start..start + used], &edge[r * width..][..used]);
            for l in 0..used {
                to[l] = if self.accumulate {
                    to[l] + sums[l]
                } else {
                    sums[l]
                };
            }
        }
        R
    }

    /// R rows from `i` on, V vectors wide, into `c`, whose rows are `ldc` apart.
    ///
    /// # Safety
    /// The processor has the instructions of `I`, and `i + R` is at most `m`.
    #[inline(always)]
    unsafe fn tile<I: Sixteen, const R: usize, const V: usize>(
        &self,
        panel: &[f32],
        ld: usize,
        i: usize,
        c: &mut [f32],
        ldc: usize,
        accumulate: bool,
    ) {
        assert!(panel.len() >= (self.depth - 1) * ld + V * FLOATS);
        assert!(c.len() >= (R - 1) * ldc + V * FLOATS);
        debug_assert!(i + R <= self.m);
        let Strided { data, row, column } = self.a;
        // SAFETY: the instructions are the caller's; the panel and `c` are long enough, and `a` was
        // found to be for m and k, where i + R <= m, p < depth.
        unsafe {
            let mut sums = [[I::splat(0.0); V]; R];
            for p in 0..self.depth {
                let mut b = [I::splat(0.0); V];
                for v in 0..V {
                    b[v] = I::read(panel.as_ptr().add(p * ld + v * FLOATS));
                }
                for r in 0..R {
                    let a = I::splat(*data.get_unchecked((i + r) * row + p * column));
                    for v in 0..V {
                        sums[r][v] = I::mul_adds(a, b[v], sums[r][v]);
                    }
                }
            }
            let one = I::splat(1.0);
            for r in 0..R {
                for v in 0..V {
                    let to = c.as_mut_ptr().add(r * ldc + v * FLOATS);
                    if accumulate {
                        sums[r][v] = I::mul_adds(one, I::read(to), sums[r][v]);
                    }
                    I::write(sums[r][v], to);
                }
            }
        }
    }
}
