//! Allocations whose size a caller chooses. Where there is no memory, the functions here return an
//! error; the standard library's own allocations would abort the process.
#![allow(
    unsafe_code,
    reason = "no safe function asks the system for zeroed memory without aborting on failure, or for \
              pages of another size"
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

/// The size in bytes from which on huge pages pay, as in NumPy: at least one of 2 MB lies in such an array,
/// wherever it begins.
const LARGE: usize = 4 << 20;

/// Asks Linux for huge pages for `values`, if these are large. Pages that were touched before stay what
/// they are. The system may refuse: then the values lie in pages as before.
pub(crate) fn ask_for_huge_pages<T>(values: &mut [T]) {
    if size_of_val(values) < LARGE {
        return;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: it reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let ends = values.as_mut_ptr_range();
        let start = (ends.start as usize).next_multiple_of(page);
        let len = (ends.end as usize - start) / page * page;
        let whole = ends.start.wrapping_byte_add(start - ends.start as usize);
        // SAFETY: the pages lie wholly within `values`, which is borrowed. The advice does not change
        // what they hold.
        unsafe { libc::madvise(whole.cast(), len, libc::MADV_HUGEPAGE) };
    }
}

#[cold]
fn no_memory<T>(len: usize) -> RloxError {
    RloxError::NoMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
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

    /// The flags of a page's mapping tell whether huge pages were asked for.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn only_large_arrays_get_huge_pages() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return; // this kernel has none
        }
        for (bytes, large) in [(LARGE - 1, false), (LARGE, true), (5 * LARGE + 3, true)] {
            let mut values = zeros::<u8>(bytes).unwrap();
            ask_for_huge_pages(&mut values);
            let middle = &raw const values[bytes / 2] as usize;
            assert_eq!(flags_at(middle).contains(" hg"), large, "{bytes}");
        }
    }

    /// The flags that `/proc/self/smaps` tells of the mapping with this address.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn flags_at(address: usize) -> String {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in smaps.lines() {
            if let Some((start, end)) = line
                .split_once(' ')
                .and_then(|(range, _)| range.split_once('-'))
            {
                let [start, end] = [start, end].map(|at| usize::from_str_radix(at, 16).unwrap());
                inside = (start..end).contains(&address);
            } else if inside && line.starts_with("VmFlags:") {
                return line.to_owned();
            }
        }
        panic!("no mapping has {address:#x}");
    }

    #[test]
    fn room_is_made_for_so_many_in_all() {
        let mut values = vec![1, 2, 3];
        assert_eq!(reserve(&mut values, 2), Ok(()));
        assert_eq!(reserve(&mut values, 100), Ok(()));
        assert!(values.capacity() >= 100 && values == [1, 2, 3]);
    }
}
