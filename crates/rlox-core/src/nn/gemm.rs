//! The matrix product of small matrices: float32, row-major, on one thread.
//!
//! The micro-kernel ([`Block::tile`]) keeps a tile of `c` in registers while it runs over k. At each k
//! it loads V vectors of `b`, broadcasts one element of `a` for each of the R rows, and does R x V
//! multiply-adds.
//!
//! The product is done in panels of `b`: at most [`K_BLOCK`] rows and as many columns as a tile has, so
//! that a panel stays in the first-level cache. Where the rows of `b` are no wider than the widest
//! tile, a panel is read in place. Otherwise it is packed: copied, so that its rows lie side by side.
//! Where `b` lies column after column, as the transpose of a weight does, a panel is transposed.
#![allow(
    unsafe_code,
    reason = "a bounds check per element of `a` would cost as much as the arithmetic"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "an iterator's functions are not sure to be inlined into code for an instruction set"
)]

use std::cell::Cell;

use super::layers::Epilogue;
use super::mlp::grown;
use super::transpose::transpose_body;
use crate::simd::{Sixteen, kernel};

/// Elements of a vector, as the code is written. It is one register of AVX-512, two of AVX2.
pub(super) const FLOATS: usize = 16;
/// Rows of a panel at most: the block size of k.
const K_BLOCK: usize = 128;
/// Vectors in a row of the widest panel.
const MAX_VECTORS: usize = 4;
/// Elements of the largest tile: 6 x 4 or 12 x 2 vectors.
const MAX_TILE: usize = 24 * FLOATS;

thread_local! {
    /// Memory for a panel, kept between the products of a thread.
    static PANEL: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// A matrix whose element `[i, j]` is `data[i * row + j * column]`. A transposed matrix is the same
/// data with the two strides exchanged.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub(super) data: &'a [f32],
    /// The stride from one row to the next, in elements.
    pub(super) row: usize,
    /// The stride from one column to the next.
    pub(super) column: usize,
}

impl<'a> Strided<'a> {
    /// A matrix whose rows, one after another, have `n` elements.
    pub(super) fn rows(data: &'a [f32], n: usize) -> Self {
        let (row, column) = (n, 1);
        Self { data, row, column }
    }

    /// A matrix whose columns, one after another, have `n` elements.
    pub(super) fn columns(data: &'a [f32], n: usize) -> Self {
        let (row, column) = (1, n);
        Self { data, row, column }
    }
}

/// The index of the last element of a matrix of `rows` by `columns`, both at least 1, with the strides
/// `row` and `column`. None where it overflows.
pub(super) fn last_of(rows: usize, row: usize, columns: usize, column: usize) -> Option<usize> {
    let in_row = (columns - 1).checked_mul(column)?;
    (rows - 1).checked_mul(row)?.checked_add(in_row)
}

/// Panics if `c = a b` cannot be computed for these numbers of rows, columns and terms, each at least 1: if
/// `b` lies neither in rows nor in columns, or a slice is shorter than that.
#[inline(always)]
pub(super) fn check([m, n, k]: [usize; 3], a: Strided<'_>, b: Strided<'_>, c: &[f32]) {
    let enough = |last: Option<usize>, len| last.is_some_and(|at| at < len);
    assert!(
        enough(last_of(m, a.row, k, a.column), a.data.len()),
        "a is too short"
    );
    assert!(
        enough(last_of(k, b.row, n, b.column), b.data.len()),
        "b is too short"
    );
    assert!(
        b.column == 1 && b.row >= n || b.row == 1 && b.column >= k,
        "b is neither in rows nor in columns"
    );
    assert!(enough(last_of(m, n, n, 1), c.len()), "c is too short");
}

kernel! {
    /// `c = a b`, then `epilogue`, which each part of `c` gets as soon as it is finished. `a` is `[m, k]`,
    /// `b` `[k, n]`, `c` `[m, n]`. The elements of a row of `b`, or those of a column, lie side by side.
    ///
    /// Panics if they do not, or a slice is shorter than that.
    pub(super) fn gemm(
        m: usize,
        n: usize,
        k: usize,
        a: Strided<'_>,
        b: Strided<'_>,
        c: &mut [f32],
        epilogue: Epilogue<'_>,
    ) = gemm_body;
}

/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn gemm_body<I: Sixteen>(
    m: usize,
    n: usize,
    k: usize,
    a: Strided<'_>,
    b: Strided<'_>,
    c: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        c[..m * n].fill(0.0);
        return epilogue.apply(c, n, 0..m, 0..n);
    }
    check([m, n, k], a, b, c);
    let mut packed = PANEL.take();
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
            accumulate: start > 0,
            epilogue: if start + depth < k {
                Epilogue::None
            } else {
                epilogue
            },
        };
        let b = Strided {
            data: &b.data[start * b.row..],
            ..b
        };
        let mut j = 0;
        while j < n {
            let left = n - j;
            let vectors = match left.div_ceil(FLOATS) {
                4.. if I::WIDE => 4,
                2.. if I::WIDE => 2,
                _ => 1,
            };
            // SAFETY: the caller has seen that the processor has the instructions of `I`.
            unsafe {
                match vectors {
                    4 => block.columns::<I, 6, 4>(b, j, &mut packed, c, &mut edge),
                    2 => block.columns::<I, 12, 2>(b, j, &mut packed, c, &mut edge),
                    _ if I::WIDE => block.columns::<I, 12, 1>(b, j, &mut packed, c, &mut edge),
                    _ => block.columns::<I, 6, 1>(b, j, &mut packed, c, &mut edge),
                }
            }
            j += vectors * FLOATS;
        }
    }
    PANEL.set(packed);
}

/// Packs a panel: copies columns `j..j + used` of `depth` rows of `b`, and fills each row up with zeros
/// to V vectors.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn pack<I: Sixteen, const V: usize>(
    b: Strided<'_>,
    j: usize,
    used: usize,
    depth: usize,
    packed: &mut Vec<f32>,
) {
    let width = V * FLOATS;
    debug_assert_eq!(used.div_ceil(FLOATS), V);
    let packed = grown(packed, depth * width);
    if b.column != 1 {
        let columns = &b.data[j * b.column..];
        // SAFETY: the caller has seen that the processor has the instructions of `I`.
        unsafe { transpose_body::<I>(used, depth, columns, b.column, packed, width) };
        return;
    }
    for p in 0..depth {
        let to = &mut packed[p * width..(p + 1) * width];
        let from = &b.data[p * b.row + j..][..used];
        if used == width {
            for v in 0..V {
                // SAFETY: the caller has seen that the processor has the instructions of `I`; both
                // slices have V vectors.
                unsafe {
                    let vector = I::read(from.as_ptr().add(v * FLOATS));
                    I::write(vector, to.as_mut_ptr().add(v * FLOATS));
                }
            }
        } else {
            to[..used].copy_from_slice(from);
            to[used..].fill(0.0);
        }
    }
}

/// The part of the product over one block of k: `depth` columns of `a` and rows of `b`.
struct Block<'a> {
    m: usize,
    n: usize,
    depth: usize,
    a: Strided<'a>,
    /// Whether `c` holds the sums over the blocks before.
    accumulate: bool,
    /// What follows this block.
    epilogue: Epilogue<'a>,
}

impl Block<'_> {
    /// The columns of `c` from `j` on that a panel of `b` makes, V vectors wide. `packed` is memory for
    /// the panel; `edge` is as in [`Self::part`].
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    unsafe fn columns<I: Sixteen, const R: usize, const V: usize>(
        &self,
        b: Strided<'_>,
        j: usize,
        packed: &mut Vec<f32>,
        c: &mut [f32],
        edge: &mut [f32],
    ) {
        let width = V * FLOATS;
        // In place, the last vector of a row may go past the row's end, into the next row. It must not
        // go past the end of `b`.
        let in_place = b.column == 1
            && b.row <= MAX_VECTORS * FLOATS
            && b.data.len() >= (self.depth - 1) * b.row + j + width;
        // SAFETY: the caller has seen that the processor has the instructions of `I`.
        unsafe {
            if in_place {
                self.rows::<I, R, V>(&b.data[j..], b.row, j, c, edge);
            } else {
                pack::<I, V>(b, j, (self.n - j).min(width), self.depth, packed);
                self.rows::<I, R, V>(packed, width, j, c, edge);
            }
        }
    }

    /// The columns of `c` from `j` on that a panel makes: tiles of R rows, then smaller tiles for the
    /// rows that are left. `edge` is as in [`Self::part`].
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
            // SAFETY: the caller has seen that the processor has the instructions of `I`.
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

    /// One tile: rows `i..i + R` of the panel's columns; returns R. Where the panel is wider than what
    /// is left of `c`, the tile is written to `edge`, which has room for it, and copied from there.
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
            // SAFETY: the caller has seen that the processor has the instructions of `I`; `rows` gives
            // only tiles with i + R <= m.
            unsafe { self.tile::<I, R, V>(panel, ld, i, c, self.n, self.accumulate) };
        } else {
            // SAFETY: as above.
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
        }
        self.epilogue.apply(c, self.n, i..i + R, j..j + used);
        R
    }

    /// The micro-kernel: a tile of R rows from `i` on, V vectors wide, written to `c`, whose rows are
    /// `ldc` apart.
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
        // SAFETY: the caller has seen that the processor has the instructions of `I`. The first two
        // assertions say that the panel and `c` are long enough. `gemm_body` has checked that `a`
        // holds m rows of k columns, of which this block has `depth`: here i + r < m and p < depth.
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
