//! Products of bfloat16 by AMX: R22.
//!
//! AMX has eight registers, each for a tile: sixteen rows of 64 bytes. One instruction multiplies a tile of
//! 16 by 32 numbers of bfloat16 with one of 32 by 16, and adds the products to a tile of 16 by 16 floats.
//! In both factors the terms 2p and 2p + 1 lie in one word, as in [`super::bfloat16`].
//!
//! Four tiles hold a block of `c`, 32 by 32, while the product runs over k. Both factors are packed in
//! panels, of 32 rows of `a` or 32 columns of `b`: first all of `a`, then one panel of `b` at a time. A
//! panel of k terms has 64 k bytes, and stays in the first-level cache up to some 700 terms.
#![allow(
    unsafe_code,
    reason = "Rust has no functions for these instructions, so they are written in assembly"
)]

use std::arch::asm;
use std::cell::Cell;
use std::sync::LazyLock;

use super::bfloat16::x86::{pair_neighbours, pair_rows};
use super::gemm::{FLOATS, Strided};
use super::layers::Epilogue;
use super::transpose::transpose;

/// Rows and columns of a block of `c`; terms of a tile.
const BLOCK: usize = 2 * FLOATS;

/// A line of the cache. A row of a tile is as long, and lies in one.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; FLOATS]);

thread_local! {
    /// Memory for the packed factors, kept between the products of a thread.
    static PACKED: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Whether the processor has AMX for bfloat16, and Linux gave this process its registers. From then on
/// the stacks of its signal handlers must have room for them.
pub(super) static GRANTED: LazyLock<bool> = LazyLock::new(|| {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const AMX: u32 = 1 << 22 | 1 << 24; // AMX-BF16 and AMX-TILE, in leaf 7
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        #[allow(unused_unsafe, reason = "it is safe from Rust 1.94 on")]
        // SAFETY: every x86-64 has CPUID, and who has AVX-512 has leaf 7.
        let leaf = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
        if leaf.edx & AMX == AMX {
            // SAFETY: the call touches no memory of ours. It fails on kernels that do not know it, and
            // where the stack of a signal handler is too small.
            let refused = unsafe {
                libc::syscall(
                    libc::SYS_arch_prctl,
                    ARCH_REQ_XCOMP_PERM,
                    XFEATURE_XTILEDATA,
                )
            };
            return refused == 0;
        }
    }
    false
});

/// The shapes of the tiles: sixteen rows of 64 bytes in each of the eight registers, and nothing in those
/// that the format leaves room for.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [[u16; 8]; 2],
    rows: [[u8; 8]; 2],
}

static SHAPES: Shapes = Shapes {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    bytes_per_row: [[64; 8], [0; 8]],
    rows: [[16; 8], [0; 8]],
};

/// [`super::gemm`] with factors of bfloat16, by AMX.
///
/// Each factor lies in rows or in columns, no dimension is 0, and no slice is shorter than the shapes say.
///
/// # Safety
/// [`GRANTED`] is true, and the processor has AVX512-BF16.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn product(
    m: usize,
    n: usize,
    k: usize,
    a: Strided<'_>,
    b: Strided<'_>,
    c: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let pairs = k.next_multiple_of(BLOCK) / 2;
    let panel = pairs * BLOCK;
    let mut lines = PACKED.take();
    let needed = panel * (m.div_ceil(BLOCK) + 2) / FLOATS;
    if lines.len() < needed {
        lines.resize(needed, Line([0; FLOATS]));
    }
    let (room, packed) = words(&mut lines).split_at_mut(panel);
    let (packed_b, packed_a) = packed.split_at_mut(panel);
    for (i, to) in (0..m).step_by(BLOCK).zip(packed_a.chunks_exact_mut(panel)) {
        let (from, used) = (&a.data[i * a.row..], BLOCK.min(m - i));
        if a.column == 1 {
            pack_terms(from, a.row, used, k, to, pairs);
        } else {
            pack_rows(from, a.column, used, k, room);
            transpose(pairs, BLOCK, as_floats(room), BLOCK, as_floats(to), pairs);
        }
    }
    let mut edge = [0.0; BLOCK * BLOCK];
    for j in (0..n).step_by(BLOCK) {
        let (from, used) = (&b.data[j * b.column..], BLOCK.min(n - j));
        if b.column == 1 {
            pack_rows(from, b.row, used, k, packed_b);
        } else {
            pack_terms(from, b.column, used, k, room, pairs);
            transpose(
                BLOCK,
                pairs,
                as_floats(room),
                pairs,
                as_floats(packed_b),
                BLOCK,
            );
        }
        // SAFETY: the caller has seen that the process has the registers.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const SHAPES, clobber_abi("sysv64"),
                options(nostack, readonly));
        }
        for (i, packed_a) in (0..m).step_by(BLOCK).zip(packed_a.chunks_exact(panel)) {
            let rows = BLOCK.min(m - i);
            if used == BLOCK && rows == BLOCK {
                // SAFETY: the tiles have their shapes.
                unsafe { block(packed_a, packed_b, &mut c[i * n + j..], n) };
            } else {
                // SAFETY: the same.
                unsafe { block(packed_a, packed_b, &mut edge, BLOCK) };
                for (r, sums) in edge.chunks_exact(BLOCK).take(rows).enumerate() {
                    c[(i + r) * n + j..][..used].copy_from_slice(&sums[..used]);
                }
            }
            epilogue.apply(c, n, i..i + rows, j..j + used);
        }
        // SAFETY: as above. A thread whose tiles are released is switched sooner.
        unsafe {
            asm!(
                "tilerelease",
                clobber_abi("sysv64"),
                options(nostack, nomem)
            )
        };
    }
    PACKED.set(lines);
}

/// A panel `[32, pairs]` of `used` rows of `from`, which are `row` elements apart, each of `k` terms side
/// by side. Words after the last term are 0; rows from `used` on keep what they have.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pack_terms(from: &[f32], row: usize, used: usize, k: usize, to: &mut [u32], pairs: usize) {
    for (r, to) in to.chunks_exact_mut(pairs).take(used).enumerate() {
        let (terms, rest) = to.split_at_mut(k.div_ceil(2));
        pair_neighbours(&from[r * row..][..k], terms);
        rest.fill(0);
    }
}

/// A panel `[pairs, 32]` of `k` rows of `from`, which are `row` elements apart, each of `used` elements.
/// Words after the last term are 0; columns from `used` on keep what they have.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pack_rows(from: &[f32], row: usize, used: usize, k: usize, to: &mut [u32]) {
    pair_rows(from, row, k, &[0.0; BLOCK][..used], to, BLOCK);
    to[k.div_ceil(2) * BLOCK..].fill(0);
}

/// `c = a b` for a panel of each, `[32, pairs]` and `[pairs, 32]`. The rows of `c` are `ldc` elements
/// apart.
///
/// # Safety
/// This thread has given the tiles their [`SHAPES`].
unsafe fn block(a: &[u32], b: &[u32], c: &mut [f32], ldc: usize) {
    let pairs = a.len() / BLOCK;
    assert!(pairs > 0 && pairs.is_multiple_of(FLOATS) && b.len() == a.len());
    assert!(c.len() >= (BLOCK - 1) * ldc + BLOCK);
    let to = c.as_mut_ptr();
    // SAFETY: at each step the loop reads sixteen words of each row of `a`, and sixteen rows of `b`; the
    // first assertion says that there are whole steps of both. The second one is for what is written.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {a_row} * 1]",
            "tileloadd tmm6, [{b} + {b_row} * 1]",
            "tileloadd tmm5, [{below} + {a_row} * 1]",
            "tileloadd tmm7, [{b} + {b_row} * 1 + 64]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, 64",
            "add {below}, 64",
            "add {b}, 2048", // sixteen rows of 128 bytes
            "dec {steps}",
            "jnz 2b",
            "tilestored [{c} + {c_row} * 1], tmm0",
            "tilestored [{c} + {c_row} * 1 + 64], tmm1",
            "tilestored [{c_below} + {c_row} * 1], tmm2",
            "tilestored [{c_below} + {c_row} * 1 + 64], tmm3",
            a = inout(reg) a.as_ptr() => _,
            below = inout(reg) a.as_ptr().add(FLOATS * pairs) => _,
            a_row = in(reg) 4 * pairs,
            b = inout(reg) b.as_ptr() => _,
            b_row = in(reg) 4 * BLOCK,
            steps = inout(reg) pairs / FLOATS => _,
            c = in(reg) to,
            c_below = in(reg) to.add(FLOATS * ldc),
            c_row = in(reg) 4 * ldc,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// The words of the lines.
fn words(lines: &mut [Line]) -> &mut [u32] {
    // SAFETY: a line is sixteen words, without anything between or after them.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * FLOATS) }
}

/// The same bits as floats, which are only moved.
fn as_floats(words: &mut [u32]) -> &mut [f32] {
    // SAFETY: both have the same size and alignment, and every word is a float.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}
