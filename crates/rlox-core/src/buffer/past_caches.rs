//! Copies whose target is not read into the caches first.
#![allow(
    unsafe_code,
    reason = "stores past the caches are instructions of their own"
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
