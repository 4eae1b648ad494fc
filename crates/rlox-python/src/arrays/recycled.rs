//! Results that nobody holds any more are given out again: P25's seam.
//!
//! A new array is a call of NumPy's allocator and, where it is large, pages of the kernel's, each of
//! which is zeroed and found anew: most of what a wide sample costs. Whoever drops a result and asks for
//! the next one gets the same memory; what somebody holds is never overwritten.
use std::collections::VecDeque;
use std::sync::{Mutex, TryLockError};

use numpy::{Ix1, PyArray, PyArray1, PyArrayMethods, PyUntypedArrayMethods, ndarray::Dimension};
use pyo3::prelude::*;
use rlox_core::switchboard::P25;

use super::look::{Item, is_as_made, is_held};
use super::made;
use super::pinned::Own;

/// Arrays of one kind of result that are kept at most: those of two calls of which each gives two, one
/// call's being held while the next one is made.
pub const FULL: usize = 4;
/// Before: none, every array is new.
pub(crate) const ROOM: usize = if P25 { FULL } else { 0 };

/// Arrays that were given out, the least recent one first.
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

    /// Whether any array is given out again.
    pub(crate) const fn has_room(&self) -> bool {
        self.room > 0
    }

    /// An array that nobody else holds: the least recent one, or a new one. What is in it is unknown.
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
                // It may be free when its turn comes again.
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

    /// The same with a copy of `values` in it, which is its caller's.
    pub(crate) fn take_copy<'py, T: Item>(
        &mut self,
        py: Python<'py>,
        values: &[T],
    ) -> PyResult<Bound<'py, PyArray1<T>>> {
        let array = self.array::<T, Ix1, 1>(py, [values.len()])?;
        // SAFETY: nobody else holds the array, which has so many elements in order.
        unsafe {
            array
                .data()
                .copy_from_nonoverlapping(values.as_ptr(), values.len())
        };
        Ok(array)
    }
}

/// `f` with what `kept` holds, or with `otherwise` while somebody has it: an array that is dropped may
/// run a finaliser, which may come here again.
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
