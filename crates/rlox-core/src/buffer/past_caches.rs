//! Copies that know better than the caches: targets are not read first, sources are asked for early.
#![allow(
    unsafe_code,
    reason = "stores past the caches, and hints to them, are instructions of their own"
)]

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
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

        assert_eq!(from.len(), to.len());
        // SAFETY: what is written to the vectors is elements, byte by byte, none of it padding.
        let (head, body, tail) = unsafe { to.align_to_mut::<__m128i>() };
        let end = from.len() - tail.len();
        head.copy_from_slice(&from[..head.len()]);
        tail.copy_from_slice(&from[end..]);
        let middle = from[head.len()..end].as_ptr().cast::<__m128i>();
        for (i, slot) in body.iter_mut().enumerate() {
            // SAFETY: `body` and the middle of `from` have as many bytes; SSE2 is always there.
            let sixteen = unsafe { _mm_loadu_si128(middle.add(i)) };
            if cfg!(miri) {
                *slot = sixteen; // it knows no stores past the caches
            } else {
                // SAFETY: SSE2 is always there.
                unsafe { _mm_stream_si128(slot, sixteen) };
            }
        }
        if !cfg!(miri) {
            // SAFETY: SSE2 is always there. Other threads see the stores in their order again.
            unsafe { _mm_sfence() };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
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

    proptest! {
        #[test]
        fn it_is_a_copy(bytes in prop::collection::vec(any::<u8>(), 0..200), start in 0..20_usize) {
            let from = &bytes[start.min(bytes.len())..];
            let mut to = vec![7; bytes.len() + 1];
            let end = 1 + from.len();
            super::copy(from, &mut to[1..end]);
            prop_assert_eq!(&to[1..end], from);
            prop_assert!(to[0] == 7 && to[end..].iter().all(|&byte| byte == 7));
        }
    }
}
