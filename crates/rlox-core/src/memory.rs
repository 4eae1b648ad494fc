//! Memory whose size a caller chooses. Where there is not so much, the functions here return an error; the
//! standard library's own allocations would end the process.
#![allow(
    unsafe_code,
    reason = "zeros come from the system as such, which no safe function asks for without aborting"
)]

use std::alloc::{Layout, alloc_zeroed};

use crate::RloxError;

/// Whether there is memory for `rows * width` elements.
pub(crate) fn fits<T>(rows: usize, width: usize) -> bool {
    rows.checked_mul(width)
        .is_some_and(|len| reserved::<T>(len).is_ok())
}

/// An empty vector with room for so many elements.
///
/// # Errors
/// If there is no memory for them.
pub fn reserved<T>(len: usize) -> Result<Vec<T>, RloxError> {
    let mut values = Vec::new();
    reserve(&mut values, len)?;
    Ok(values)
}

/// Room in `values` for so many elements in all, so that it grows to them without asking again.
///
/// # Errors
/// If there is no memory for them.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, len: usize) -> Result<(), RloxError> {
    if len <= values.capacity() {
        return Ok(());
    }
    values
        .try_reserve_exact(len - values.len())
        .map_err(|_| no_memory::<T>(len))
}

/// Room in `values` for so many elements more; it grows in ever larger steps.
///
/// # Errors
/// If there is no memory for them.
#[inline]
pub fn reserve_more<T>(values: &mut Vec<T>, more: usize) -> Result<(), RloxError> {
    values
        .try_reserve(more)
        .map_err(|_| no_memory::<T>(values.len().saturating_add(more)))
}

/// Numbers of which zero is all zero bytes.
///
/// # Safety
/// A value of the type whose bytes are all zero is a valid one: 0, or false.
pub unsafe trait Zero: Copy {}

// SAFETY: 0.0.
unsafe impl Zero for f32 {}
// SAFETY: 0.0.
unsafe impl Zero for f64 {}
// SAFETY: 0.
unsafe impl Zero for u8 {}
// SAFETY: 0.
unsafe impl Zero for u32 {}
// SAFETY: 0.
unsafe impl Zero for i64 {}
// SAFETY: false.
unsafe impl Zero for bool {}

/// So many zeros, in pages that the system hands out as they are touched.
///
/// # Errors
/// If there is no memory for them.
pub(crate) fn zeros<T: Zero>(len: usize) -> Result<Vec<T>, RloxError> {
    let layout = Layout::array::<T>(len).map_err(|_| no_memory::<T>(len))?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: it is not of size zero.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(no_memory::<T>(len));
    }
    // SAFETY: so many zeros, from the allocator that vectors use, with the layout that they use.
    Ok(unsafe { Vec::from_raw_parts(memory.cast(), len, len) })
}

#[cold]
fn no_memory<T>(len: usize) -> RloxError {
    RloxError::NoMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_memory_for_is_an_error() {
        for len in [usize::MAX, usize::MAX / 8, 1 << 60] {
            let bytes = len.saturating_mul(8);
            let error = Err(RloxError::NoMemory { bytes });
            assert_eq!(zeros::<f64>(len), error);
            assert_eq!(reserved::<f64>(len), error);
        }
        assert_eq!(zeros::<f64>(0), Ok(Vec::new()));
        assert_eq!(zeros::<u32>(3), Ok(vec![0; 3]));
    }

    #[test]
    fn room_is_made_for_so_many_in_all() {
        let mut values = vec![1, 2, 3];
        assert_eq!(reserve(&mut values, 2), Ok(()));
        assert_eq!(reserve(&mut values, 100), Ok(()));
        assert!(values.capacity() >= 100 && values == [1, 2, 3]);
    }
}
