//! Copies that know better than the caches: targets are not read first, sources are asked for early.
#![allow(
    unsafe_code,
    reason = "stores past the caches, and hints to them, are instructions of their own"
)]

#[cfg(target_arch = "x86_64")]
use std::slice;

/// Numbers that can be copied byte by byte.
///
/// # Safety
/// Every byte of a value is initialised: the type has no padding.
pub unsafe trait Plain: Copy {}

// SAFETY: four bytes of a number.
unsafe impl Plain for f32 {}
// SAFETY: one byte of a number.
unsafe impl Plain for u8 {}
// SAFETY: one byte, 0 or 1.
unsafe impl Plain for bool {}

/// Bytes from which on a sample leaves no cache for what comes after it.
pub(super) const LARGE: usize = 8 << 20;

/// Copies `from` to `to`, of the same length, past the caches where the processor can.
pub(super) fn copy<T: Plain>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    {
        assert_eq!(from.len(), to.len());
        // SAFETY: what is written to the lines is elements, byte by byte, none of it padding.
        let (head, lines, tail) = unsafe { to.align_to_mut::<x86::Line>() };
        let end = from.len() - tail.len();
        head.copy_from_slice(&from[..head.len()]);
        tail.copy_from_slice(&from[end..]);
        let middle = from[head.len()..end].as_ptr().cast::<[u8; 64]>();
        // SAFETY: `lines` and the middle of `from` have as many bytes, and each of them is a `u8`.
        x86::stream(unsafe { slice::from_raw_parts(middle, lines.len()) }, lines);
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _mm512_loadu_si512, _mm512_stream_si512,
    };

    use crate::simd::{Instructions, kernel};

    /// What caches and memory are written in, whole where nothing else comes between.
    #[repr(align(64))]
    pub(super) struct Line([u8; 64]);

    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    unsafe fn each<I: Instructions>(from: &[[u8; 64]], to: &mut [Line]) {
        for (from, Line(to)) in from.iter().zip(to) {
            if cfg!(miri) {
                *to = *from; // it knows no stores past the caches
            } else if I::WIDE {
                // SAFETY: these are instructions of `I`, which are the caller's, and `to` is a line.
                unsafe {
                    let line = _mm512_loadu_si512(from.as_ptr().cast());
                    _mm512_stream_si512(to.as_mut_ptr().cast(), line);
                }
            } else {
                let (from, to) = (from.as_chunks::<16>().0, to.as_chunks_mut::<16>().0);
                // SAFETY: SSE2 is always there, and a quarter of a line is in its place.
                let parts: [_; 4] =
                    std::array::from_fn(|i| unsafe { _mm_loadu_si128(from[i].as_ptr().cast()) });
                for (to, part) in to.iter_mut().zip(parts) {
                    // SAFETY: the same.
                    unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), part) };
                }
            }
        }
        if !cfg!(miri) {
            // SAFETY: SSE2 is always there. Other threads see the stores in their order again.
            unsafe { _mm_sfence() };
        }
    }

    kernel! {
        /// Stores lines.
        pub(super) fn stream(from: &[[u8; 64]], to: &mut [Line]) = each;
    }
}

/// Bytes of a row that are asked for early. The processor finds out by itself how it goes on.
const EARLY: usize = 512;

/// Asks for the beginning of a row that is to be read soon.
#[inline]
pub(super) fn ask_for<T: Plain>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(64 / size_of::<T>()).take(EARLY / 64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: SSE is always there, and a hint reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::simd;

    proptest! {
        #[test]
        fn it_is_a_copy(bytes in prop::collection::vec(any::<u8>(), 0..600), start in 0..20_usize) {
            let from = &bytes[start.min(bytes.len())..];
            simd::at_every_level(|| {
                let mut to = vec![7; bytes.len() + 1];
                let end = 1 + from.len();
                super::copy(from, &mut to[1..end]);
                prop_assert_eq!(&to[1..end], from);
                prop_assert!(to[0] == 7 && to[end..].iter().all(|&byte| byte == 7));
                Ok(())
            })?;
        }
    }
}
