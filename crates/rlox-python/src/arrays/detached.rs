//! The scope of calls that let go of the interpreter: see the module above.

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

/// `f` with what looks at arrays, and can then let go of the interpreter.
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

/// Of a call that lets go of the interpreter.
pub struct Detaching<'s> {
    entry: Entry<'s>,
    bytes_read: Cell<usize>,
}

impl Detaching<'_> {
    /// `array` as an array of `T` to be read, with the dimensions of `D` or of `shape`.
    pub(crate) fn read<'x, T: Number, D: Dimension>(
        &'x self,
        array: &'x Pinned<'_>,
        shape: Option<&[usize]>,
    ) -> PyResult<&'x [T]> {
        let (data, len) = self.look_at::<T, D>(array, shape, Use::Read)?;
        // SAFETY: so many elements lie there. The array is kept, is not resized, and nobody who asks
        // writes to them until the end of the scope.
        Ok(unsafe { slice::from_raw_parts(data, len) })
    }

    /// `array` as an array of bools to be read: a copy of it, since any bytes may come into that
    /// meanwhile.
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

    /// `array` as an array of `T` to be written to, likewise.
    #[allow(clippy::mut_from_ref, reason = "no two places of a call overlap")]
    pub(crate) fn write<'x, T: Number, D: Dimension>(
        &'x self,
        array: &'x Pinned<'_>,
        shape: Option<&[usize]>,
    ) -> PyResult<&'x mut [T]> {
        let (data, len) = self.look_at::<T, D>(array, shape, Use::Write)?;
        // SAFETY: as in `read`; and nobody who asks reads them.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// Bytes of the arrays that the call reads.
    pub(crate) fn bytes_read(&self) -> usize {
        self.bytes_read.get()
    }

    /// `work` with the interpreter let go of.
    pub(crate) fn detach<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.entry.detach(work)
    }

    /// The same for some milliseconds, which a fork waits for; a thread that is about to fork makes
    /// `work` keep the interpreter.
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

/// An array that samples are written to, by a call that may let go of the interpreter.
pub trait Refilled: sealed::Elements {
    /// `len` numbers to be written to, one after the other in whatever shape. None, without an error, if
    /// the array is not so many of those, is read-only, or somebody works with it.
    #[inline]
    fn numbers<'x, T: Number>(
        &'x mut self,
        scope: &'x Detaching<'_>,
        len: usize,
    ) -> Option<&'x mut [T]> {
        let data = self.look_at::<T>(scope, len)?;
        // SAFETY: so many elements lie there, and are not moved: nobody can reach the array, or there is a
        // weak reference to it. Nobody else has a slice of them: this one borrows the array, and of
        // what others can reach it was noted and asked about.
        Some(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// The same of bools, all of them false.
    #[inline]
    fn flags<'x>(&'x mut self, scope: &'x Detaching<'_>, len: usize) -> Option<&'x mut [bool]> {
        let data = self.look_at::<bool>(scope, len)?;
        // SAFETY: as above; what was in it, which could be any bytes, is not read.
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

    /// How this file alone reaches the elements.
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
