//! Gives arrays out again that nobody holds any more: P25's seam.
//!
//! A new array costs a call of NumPy's allocator and, if it is large, new pages of memory, which the
//! kernel zeroes and maps one by one: most of what a wide sample costs. A caller that drops a result
//! and asks for the next one gets the same memory. An array that somebody holds is never overwritten.

use std::collections::VecDeque;
use std::sync::{Mutex, TryLockError};

use numpy::{Ix1, PyArray, PyArray1, PyArrayMethods, PyUntypedArrayMethods, ndarray::Dimension};
use pyo3::prelude::*;
use rlox_core::switchboard::P25;

use super::look::{Item, is_as_made, is_held};
use super::made;
use super::pinned::Own;

/// The most arrays of one kind that are kept. A caller holds one result while it asks for the next, and
/// a result has two arrays of a kind (obs and next_obs).
pub const FULL: usize = 4;
/// The number that this build keeps: none in the baseline, where every array is new.
pub(crate) const ROOM: usize = if P25 { FULL } else { 0 };

/// Arrays of one kind that were given out, the least recent first.
pub(crate) struct Recycled {
    arrays: VecDeque<Py<PyAny>>,
    room: usize,
}

impl Recycled {
    /// None yet, and never more than `room`.
    pub(crate) const fn new(room: usize) -> Self {
        Self {
            arrays: VecDeque::new(),
            room,
        }
    }

    /// Whether arrays are given out again at all.
    pub(crate) const fn has_room(&self) -> bool {
        self.room > 0
    }

    /// An array that nobody else holds: the least recent one, or a new one. Its contents are
    /// unspecified.
    #[inline]
    pub(crate) fn take<T: Item, D: Dimension, const N: usize>(
        &mut self,
        py: Python<'_>,
        shape: [usize; N],
    ) -> PyResult<Own> {
        self.array::<T, D, N>(py, shape).map(Own::new)
    }

    fn array<'py, T: Item, D: Dimension, const N: usize>(
        &mut self,
        py: Python<'py>,
        shape: [usize; N],
    ) -> PyResult<Bound<'py, PyArray<T, D>>> {
        if let Some(oldest) = self.arrays.pop_front() {
            let array = oldest.bind(py);
            if is_held(array) {
                // It is tried again when its turn comes.
                if self.arrays.len() + 1 < self.room {
                    self.arrays.push_back(oldest);
                }
            } else if let Ok(array) = array.cast::<PyArray<T, D>>()
                && array.shape() == shape
                && is_as_made(array.as_untyped())
            {
                let array = array.clone();
                self.arrays.push_back(oldest);
                return Ok(array);
            }
        }
        let array = made::zeros(py, shape)?;
        if self.arrays.len() < self.room {
            let for_one = self.arrays.try_reserve(1);
            if for_one.is_ok() {
                self.arrays.push_back(array.clone().into_any().unbind());
            }
        }
        Ok(array)
    }

    /// Such an array with a copy of `values` in it, to be given to a caller.
    pub(crate) fn take_copy<'py, T: Item>(
        &mut self,
        py: Python<'py>,
        values: &[T],
    ) -> PyResult<Bound<'py, PyArray1<T>>> {
        let array = self.array::<T, Ix1, 1>(py, [values.len()])?;
        // SAFETY: nobody else holds the array, and it has `values.len()` contiguous elements.
        unsafe {
            array
                .data()
                .copy_from_nonoverlapping(values.as_ptr(), values.len())
        };
        Ok(array)
    }
}

/// Calls `f` with the contents of `kept`, or with those of `otherwise` while `kept` is locked. That
/// happens in one thread: dropping an array may run a finaliser, which may come here again.
pub(crate) fn unless_taken<P, R>(
    kept: &Mutex<P>,
    otherwise: impl FnOnce() -> P,
    f: impl FnOnce(&mut P) -> R,
) -> R {
    match kept.try_lock() {
        Ok(mut kept) => f(&mut kept),
        Err(TryLockError::Poisoned(kept)) => f(&mut kept.into_inner()),
        Err(TryLockError::WouldBlock) => f(&mut otherwise()),
    }
}
