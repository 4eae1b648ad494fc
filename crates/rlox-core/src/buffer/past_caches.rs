//! Copies of large samples that leave the caches alone, by non-temporal stores. These write to memory
//! directly, and do not read the target's cache lines first. Rows that are copied soon are prefetched.
#![allow(
    unsafe_code,
    reason = "stores past the caches are instructions of their own"
)]

#[cfg(target_arch = "x86_64")]
use std::slice;

use crate::simd::prefetch;

/// A type whose values can be copied byte by byte.
///
/// # Safety
/// Every byte of a value is initialised: the type has no padding.
pub unsafe trait Plain: Copy {}

// SAFETY: all four bytes are the number's.
unsafe impl Plain for f32 {}
// SAFETY: the byte is the number.
unsafe impl Plain for u8 {}
// SAFETY: the byte is 0 or 1.
unsafe impl Plain for bool {}

/// The size in bytes from which on a sample would displace nearly everything else from the caches.
pub(super) const LARGE: usize = 8 << 20;

/// Copies `from` to `to`, which has the same length, by non-temporal stores where the target has them.
pub(super) fn copy<T: Plain>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    {
        assert_eq!(from.len(), to.len());
        // SAFETY: elements of a `Plain` type are initialised bytes, so they can be seen as lines of
        // bytes. Below, bytes of elements are written to the lines, so these are elements again.
        let (head, lines, tail) = unsafe { to.align_to_mut::<x86::Line>() };
        let end = from.len() - tail.len();
        head.copy_from_slice(&from[..head.len()]);
        tail.copy_from_slice(&from[end..]);
        let middle = from[head.len()..end].as_ptr().cast::<[u8; 64]>();
        // SAFETY: the middle of `from` has as many bytes as `lines`, and all are initialised.
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

    /// A cache line. Non-temporal stores that fill a whole line go to memory at once.
    #[repr(align(64))]
    pub(super) struct Line([u8; 64]);

    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    unsafe fn each<I: Instructions>(from: &[[u8; 64]], to: &mut [Line]) {
        for (from, Line(to)) in from.iter().zip(to) {
            if cfg!(miri) {
                *to = *from; // Miri has no non-temporal stores
            } else if I::WIDE {
                // SAFETY: the caller has seen that the processor has the instructions of `I`, here
                // AVX-512. `from` has 64 bytes, and `to` has 64 that are aligned to a line.
                unsafe {
                    let line = _mm512_loadu_si512(from.as_ptr().cast());
                    _mm512_stream_si512(to.as_mut_ptr().cast(), line);
                }
            } else {
                let (from, to) = (from.as_chunks::<16>().0, to.as_chunks_mut::<16>().0);
                // SAFETY: every x86-64 has SSE2, and 16 bytes are read.
                let parts: [_; 4] =
                    std::array::from_fn(|i| unsafe { _mm_loadu_si128(from[i].as_ptr().cast()) });
                for (to, part) in to.iter_mut().zip(parts) {
                    // SAFETY: as above; a quarter of a line is aligned to its 16 bytes.
                    unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), part) };
                }
            }
        }
        if !cfg!(miri) {
            // SAFETY: every x86-64 has SSE. After the fence, the stores are ordered like any others,
            // for this thread and for all.
            unsafe { _mm_sfence() };
        }
    }

    kernel! {
        /// Copies lines by non-temporal stores.
        pub(super) fn stream(from: &[[u8; 64]], to: &mut [Line]) = each;
    }
}

/// The most bytes of a row that are prefetched. The processor prefetches the rest by itself.
const EARLY: usize = 512;

/// Prefetches the beginning of a row that will be read soon.
#[inline]
pub(super) fn ask_for<T>(row: &[T]) {
    const { assert!(size_of::<T>() <= 64, "a line holds at least one element") };
    for line in row.chunks(64 / size_of::<T>()).take(EARLY / 64) {
        prefetch(line.as_ptr());
    }
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
