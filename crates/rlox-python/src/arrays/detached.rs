//! The scope of calls that release the GIL: see the module above.

use std::cell::Cell;
use std::slice;

use numpy::{PyArrayMethods, ndarray::Dimension};
use pyo3::prelude::*;

use super::look::{Item, Number, is_writable, look_any, parts, place_of};
use super::looked::flags;
use super::not_writable;
use super::pinned::{Kept, Own, Pinned};
use super::scope::Guarded;
use super::table::{Entry, Places, Use};
use crate::errors::copied;
use crate::lock::{Busy, is_forking};

/// Locks `guarded`, and calls `f` with what looks at arrays and can then release the GIL.
#[inline]
pub(crate) fn detaching<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    f: impl for<'s> FnOnce(&mut G::Inner, &'s Detaching<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| {
        let places = Places::new();
        let entry = Entry::new(py, &places);
        let bytes_read = Cell::new(0);
        f(inner, &Detaching { entry, bytes_read })
    })
}

/// Looks at the arrays of a call that releases the GIL.
pub struct Detaching<'s> {
    entry: Entry<'s>,
    bytes_read: Cell<usize>,
}

impl Detaching<'_> {
    /// The elements of `array`, to be read. It must be an array of `T` of the given shape, or with the
    /// dimensions of `D`.
    pub(crate) fn read<'x, T: Number, D: Dimension>(
        &'x self,
        array: &'x Pinned<'_>,
        shape: Option<&[usize]>,
    ) -> PyResult<&'x [T]> {
        let (data, len) = self.look_at::<T, D>(array, shape, Use::Read)?;
        // SAFETY: `len` elements lie there. The array is borrowed, NumPy does not resize it while it is
        // pinned, and no other scope writes to it until the end of this one, since its place is in the
        // table.
        Ok(unsafe { slice::from_raw_parts(data, len) })
    }

    /// A copy of the bools of `array`, as in [`Self::read`]. It is a copy since other code may write
    /// other bytes than 0 and 1 to the array meanwhile.
    pub(crate) fn flags<D: Dimension>(
        &self,
        array: &Pinned<'_>,
        shape: Option<&[usize]>,
    ) -> PyResult<Vec<bool>> {
        let (data, len) = self.look_at::<bool, D>(array, shape, Use::Read)?;
        // SAFETY: as in `read`; any byte is a `u8`.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), len) };
        copied(flags(array.argument.name, bytes)?)
    }

    /// The elements of `array`, to be written to, as in [`Self::read`].
    #[allow(
        clippy::mut_from_ref,
        reason = "no two arrays of a call overlap, or there is an error"
    )]
    pub(crate) fn write<'x, T: Number, D: Dimension>(
        &'x self,
        array: &'x Pinned<'_>,
        shape: Option<&[usize]>,
    ) -> PyResult<&'x mut [T]> {
        let (data, len) = self.look_at::<T, D>(array, shape, Use::Write)?;
        // SAFETY: as in `read`; and no other slice of a scope has these elements, to read or to write.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// The bytes of the arrays that the call reads.
    pub(crate) fn bytes_read(&self) -> usize {
        self.bytes_read.get()
    }

    /// Runs `work` with the GIL released.
    pub(crate) fn detach<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.entry.detach(work)
    }

    /// Runs `work`, which takes some milliseconds at most, with the GIL released. A fork by another
    /// thread waits for it. If one is about to begin, `work` runs with the GIL held, so that the fork
    /// need not wait.
    #[inline]
    pub(crate) fn detach_briefly<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        if is_forking(self.entry.py) {
            return work();
        }
        let _busy = Busy::new(self.entry.py);
        self.entry.detach(work)
    }

    fn look_at<T: Item, D: Dimension>(
        &self,
        array: &Pinned<'_>,
        shape: Option<&[usize]>,
        how: Use,
    ) -> PyResult<(*mut T, usize)> {
        let name = array.argument.name;
        let looked = array.argument.look::<T, D>(shape)?;
        array.check(self.entry.py)?;
        if how != Use::Read && !is_writable(looked.as_untyped()) {
            return Err(not_writable(name));
        }
        let place = place_of(looked);
        if how == Use::Read {
            self.bytes_read.set(self.bytes_read.get() + place.len());
        }
        self.entry.note(name, name, place, how)?;
        Ok(parts(looked))
    }
}

/// An array that samples are written to, by a call that may release the GIL.
pub trait Refilled: sealed::Elements {
    /// The elements of the array, to be written to. None if it does not have `len` contiguous elements
    /// of `T`, of whatever shape, is read-only, or is in use by another scope: the caller then takes
    /// another array.
    #[inline]
    fn numbers<'x, T: Number>(
        &'x mut self,
        scope: &'x Detaching<'_>,
        len: usize,
    ) -> Option<&'x mut [T]> {
        let data = self.look_at::<T>(scope, len)?;
        // SAFETY: `len` elements lie there. NumPy does not resize the array: no Python code can reach
        // it (`Own`), or there is a weak reference to it (`Kept`). No other slice has these elements:
        // this one borrows the array mutably, and what Python code can reach is in the table.
        Some(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// The same for bools, all set to false.
    #[inline]
    fn flags<'x>(&'x mut self, scope: &'x Detaching<'_>, len: usize) -> Option<&'x mut [bool]> {
        let data = self.look_at::<bool>(scope, len)?;
        // SAFETY: as above. The elements may be any bytes, so they are overwritten before they are
        // bools.
        unsafe {
            data.write_bytes(0, len);
            Some(slice::from_raw_parts_mut(data, len))
        }
    }
}

impl Refilled for Own {}
impl Refilled for Kept {}

mod sealed {
    use super::*;

    /// Gives this file alone access to the elements.
    pub trait Elements {
        fn look_at<T: Item>(&mut self, scope: &Detaching<'_>, len: usize) -> Option<*mut T>;
    }

    impl Elements for Own {
        #[inline]
        fn look_at<T: Item>(&mut self, scope: &Detaching<'_>, len: usize) -> Option<*mut T> {
            look_any(self.0.bind(scope.entry.py), len)
        }
    }

    impl Elements for Kept {
        #[inline]
        fn look_at<T: Item>(&mut self, scope: &Detaching<'_>, len: usize) -> Option<*mut T> {
            let data = look_any::<T>(self.array.bind(scope.entry.py), len)?;
            let place = data as usize..data as usize + len * size_of::<T>();
            scope.entry.note("", "", place, Use::Write).ok()?;
            Some(data)
        }
    }
}
