//! Allocations whose size a caller chooses. Where there is no memory, the functions here return an
//! error; the standard library's own allocations would abort the process.
#![allow(
    unsafe_code,
    reason = "no safe function asks the system for zeroed memory without aborting on failure"
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

/// Makes room in `values` for so many elements in all, so that it can grow to them without an allocation.
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

/// Makes room in `values` for so many more elements. The room grows in ever larger steps, so that many
/// calls need few allocations.
///
/// # Errors
/// If there is no memory for them.
#[inline]
pub fn reserve_more<T>(values: &mut Vec<T>, more: usize) -> Result<(), RloxError> {
    values
        .try_reserve(more)
        .map_err(|_| no_memory::<T>(values.len().saturating_add(more)))
}

/// A type whose zero is all zero bytes.
///
/// # Safety
/// All zero bytes must be a valid value of the type.
pub unsafe trait Zero: Copy {}

// SAFETY: zero bytes are 0.0.
unsafe impl Zero for f32 {}
// SAFETY: zero bytes are 0.0.
unsafe impl Zero for f64 {}
// SAFETY: a zero byte is 0.
unsafe impl Zero for u8 {}
// SAFETY: zero bytes are 0.
unsafe impl Zero for u32 {}
// SAFETY: zero bytes are 0.
unsafe impl Zero for i64 {}
// SAFETY: a zero byte is false.
unsafe impl Zero for bool {}

/// A vector of `len` zeros. The system zeroes its pages when they are first touched.
///
/// # Errors
/// If there is no memory for them.
pub(crate) fn zeros<T: Zero>(len: usize) -> Result<Vec<T>, RloxError> {
    let layout = Layout::array::<T>(len).map_err(|_| no_memory::<T>(len))?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not of size zero.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(no_memory::<T>(len));
    }
    // SAFETY: the memory comes from the allocator that vectors use, with the layout of `len` elements,
    // and zero bytes are valid elements.
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
