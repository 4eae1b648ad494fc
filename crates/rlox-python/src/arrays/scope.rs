//! The scopes in which arrays are looked at, read and written: see the module above.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::slice;

use numpy::{PyArray, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods, ndarray::Dimension};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::look::{Float, Item, Number, float_type, is_writable, look, look_any, parts, place_of};
use super::pinned::{Kept, Output, Own, Pinned};
use super::table::{Entry, Use, ask};
use super::{Argument, BORROWS, Borrows, being_written, not_writable};
use crate::errors::copied;
use crate::lock::{Busy, is_forking};

/// What a call locks before it looks at arrays.
pub(crate) trait Guarded {
    type Inner;

    /// `f` with what is locked. May let go of the interpreter before `f`, and afterwards.
    fn guard<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Self::Inner) -> PyResult<R>,
    ) -> PyResult<R>;
}

/// Nothing, for a call that works on its arguments alone.
pub(crate) struct Unguarded;

impl Guarded for Unguarded {
    type Inner = ();

    #[inline]
    fn guard<R>(&self, _py: Python<'_>, f: impl FnOnce(&mut ()) -> PyResult<R>) -> PyResult<R> {
        f(&mut ())
    }
}

/// `f` with what looks at arrays that are read, while the interpreter is kept.
#[inline]
pub(crate) fn reading<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    borrows: Borrows,
    f: impl for<'s> FnOnce(&mut G::Inner, &'s Reading<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| f(inner, &Reading { py, borrows }))
}

/// `f` with what looks at arrays that are read and written to, while the interpreter is kept.
#[inline]
pub(crate) fn writing<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    f: impl for<'s> FnOnce(&mut G::Inner, &mut Writing<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| f(inner, &mut Writing(Entry::new(py))))
}

/// `f` with what looks at arrays, and can then let go of the interpreter.
#[inline]
pub(crate) fn detaching<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    f: impl for<'s> FnOnce(&mut G::Inner, &'s Detaching<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| {
        let entry = Entry::new(py);
        let bytes_read = Cell::new(0);
        f(inner, &Detaching { entry, bytes_read })
    })
}

/// What looks at arrays that a call reads.
pub(crate) trait Looks {
    /// `argument` as a C-contiguous array of `T` with the dimensions of `D`, or of `shape`.
    fn read<'x, T: Item, D: Dimension + 'x>(
        &'x self,
        argument: Argument<'x>,
        shape: Option<&[usize]>,
    ) -> PyResult<Looked<'x, T, D>>;
}

/// Of a call that writes to no array.
pub(crate) struct Reading<'py> {
    py: Python<'py>,
    borrows: Borrows,
}

impl Looks for Reading<'_> {
    #[inline]
    fn read<'x, T: Item, D: Dimension + 'x>(
        &'x self,
        argument: Argument<'x>,
        shape: Option<&[usize]>,
    ) -> PyResult<Looked<'x, T, D>> {
        let array = look(argument.name, argument.object, shape)?;
        ask(self.py, argument.name, place_of(array))?;
        Looked::new(self.borrows, argument.name, array)
    }
}

impl Reading<'_> {
    /// Which of the two floating-point types an array holds.
    pub(crate) fn float_type(&self, argument: Argument<'_>) -> PyResult<Float> {
        float_type(argument.name, argument.object)
    }
}

/// Of a call that writes to some.
pub(crate) struct Writing<'s>(Entry<'s>);

impl Looks for Writing<'_> {
    #[inline]
    fn read<'x, T: Item, D: Dimension + 'x>(
        &'x self,
        argument: Argument<'x>,
        shape: Option<&[usize]>,
    ) -> PyResult<Looked<'x, T, D>> {
        let array = look(argument.name, argument.object, shape)?;
        let looked = Looked::new(BORROWS, argument.name, array)?;
        let place = place_of(array);
        self.0.note(argument.name, "an input", place, Use::Read)?;
        Ok(looked)
    }
}

impl<'s> Writing<'s> {
    /// `output` as an array of numbers of this shape, to be written to. What is in it may be anything:
    /// a new array comes from NumPy's allocator, so to the compiler it holds something.
    #[inline]
    pub(crate) fn write<'x, T: Number, D: Dimension>(
        &'x self,
        output: &'x mut Output,
        shape: &[usize],
    ) -> PyResult<&'x mut [T]> {
        let (data, len) = self.look_at::<T, D>(output, shape, Use::Write)?;
        // SAFETY: so many elements lie there. Nobody else has a slice of the same memory: of the caller's
        // it was noted and asked about, and one of the core's is borrowed for as long as this one.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// `output` as an array of this shape that is written to when nothing is read any more: what is read
    /// may lie in it.
    #[inline]
    pub(crate) fn later<'x, T: Item, D: Dimension>(
        &self,
        output: &'x mut Output,
        shape: &[usize],
    ) -> PyResult<Later<'x, T>>
    where
        's: 'x,
    {
        let (data, len) = self.look_at::<T, D>(output, shape, Use::WriteLater)?;
        let _of = PhantomData;
        Ok(Later { data, len, _of })
    }

    #[inline]
    fn look_at<T: Item, D: Dimension>(
        &self,
        output: &Output,
        shape: &[usize],
        how: Use,
    ) -> PyResult<(*mut T, usize)> {
        let (name, array) = match output {
            Output::Given(name, array) => (*name, array),
            Output::New(Own(array)) => ("", array),
        };
        let array = look::<T, D>(name, array.bind(self.0.py), Some(shape))?;
        if !is_writable(array.as_untyped()) {
            return Err(not_writable(name));
        }
        if let Output::Given(..) = output {
            if BORROWS == Borrows::Counted {
                let counted = array.try_readwrite();
                counted.map_err(|_| not_writable(name))?;
            }
            self.0.note(name, name, place_of(array), how)?;
        }
        Ok(parts(array))
    }
}

/// An array that is written to when nothing is read any more.
pub(crate) struct Later<'x, T: Item> {
    data: *mut T,
    len: usize,
    _of: PhantomData<&'x mut T>,
}

impl<T: Number> Later<'_, T> {
    /// The array, now that nothing is read.
    #[inline]
    pub(crate) fn now<'x>(&'x mut self, _scope: &'x mut Writing<'_>) -> &'x mut [T] {
        // SAFETY: as in `Writing::write`; what the scope has given to be read is no longer borrowed.
        unsafe { slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Later<'_, bool> {
    /// Copies as many flags as there are, now that nothing is read.
    #[inline]
    pub(crate) fn copy_from(self, flags: &[bool], _scope: &mut Writing<'_>) {
        assert_eq!(self.len, flags.len());
        // SAFETY: as above. What is in it is not read: it could be any bytes.
        unsafe { self.data.copy_from(flags.as_ptr(), self.len) };
    }
}

/// Of a call that lets go of the interpreter.
pub(crate) struct Detaching<'s> {
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
        let Argument { name, object } = array.argument;
        let looked = look::<T, D>(name, object, shape)?;
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
pub(crate) trait Refilled: sealed::Refilled {
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
    pub(crate) trait Refilled {
        fn look_at<T: Item>(&mut self, scope: &Detaching<'_>, len: usize) -> Option<*mut T>;
    }

    impl Refilled for Own {
        #[inline]
        fn look_at<T: Item>(&mut self, scope: &Detaching<'_>, len: usize) -> Option<*mut T> {
            look_any(self.0.bind(scope.entry.py), len)
        }
    }

    impl Refilled for Kept {
        #[inline]
        fn look_at<T: Item>(&mut self, scope: &Detaching<'_>, len: usize) -> Option<*mut T> {
            let data = look_any::<T>(self.array.bind(scope.entry.py), len)?;
            let place = data as usize..data as usize + len * size_of::<T>();
            scope.entry.note("", "", place, Use::Write).ok()?;
            Some(data)
        }
    }
}

/// An array as it was looked at, until the scope ends.
pub(crate) struct Looked<'x, T: Item, D: Dimension> {
    name: &'static str,
    data: *const T,
    len: usize,
    shape: &'x [usize],
    _counted: Option<PyReadonlyArray<'x, T, D>>,
    _of: PhantomData<&'x T>,
}

impl<'x, T: Item, D: Dimension> Looked<'x, T, D> {
    #[inline]
    fn new(
        borrows: Borrows,
        name: &'static str,
        array: &'x Bound<'x, PyArray<T, D>>,
    ) -> PyResult<Self> {
        let (data, len) = parts(array);
        Ok(Self {
            name,
            data,
            len,
            shape: array.shape(),
            _counted: match borrows {
                Borrows::Counted => Some(readonly(name, array)?),
                Borrows::Trusted => None,
            },
            _of: PhantomData,
        })
    }

    #[inline]
    pub(crate) fn shape(&self) -> &'x [usize] {
        self.shape
    }
}

fn readonly<'x, T: Item, D: Dimension>(
    name: &str,
    array: &Bound<'x, PyArray<T, D>>,
) -> PyResult<PyReadonlyArray<'x, T, D>> {
    array.try_readonly().map_err(|_| being_written(name))
}

impl<T: Number, D: Dimension> Deref for Looked<'_, T, D> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many elements lie there, since nothing of Python's has run since the array was looked
        // at; who writes meanwhile was asked.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }
}

impl<'x, D: Dimension> Looked<'x, bool, D> {
    /// Its elements, of which some may be neither 0 nor 1.
    #[inline]
    pub(crate) fn bytes(&self) -> &'x [u8] {
        // SAFETY: as above; any byte is a `u8`.
        unsafe { slice::from_raw_parts(self.data.cast(), self.len) }
    }

    /// Its elements; ValueError for a byte that is no bool.
    #[inline]
    pub(crate) fn flags(&self) -> PyResult<&'x [bool]> {
        flags(self.name, self.bytes())
    }
}

/// `bytes` as bools. NumPy makes bools of any bytes; in Rust another one than 0 or 1 is none.
fn flags<'a>(argument: &str, bytes: &'a [u8]) -> PyResult<&'a [bool]> {
    let (eights, rest) = bytes.as_chunks::<8>();
    let odd = eights.iter().fold(0, |odd, &eight| {
        odd | (u64::from_ne_bytes(eight) & !0x0101_0101_0101_0101)
    });
    if odd != 0 || rest.iter().any(|&byte| byte > 1) {
        let found = bytes.iter().find(|&&byte| byte > 1).unwrap_or(&0);
        return Err(PyValueError::new_err(format!(
            "{argument}: holds a byte of {found}, expected 0 or 1; pass \
             {argument}.view(np.uint8) != 0"
        )));
    }
    // SAFETY: each byte is 0 or 1.
    Ok(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
}
