//! The scopes of calls that keep the GIL: see the module above.
//!
//! The functions are `inline(always)`: a push, which is closures within closures, takes a twelfth less
//! time so.

use std::marker::PhantomData;
use std::slice;

use numpy::{PyArrayMethods, ndarray::Dimension};
use pyo3::prelude::*;

use super::detached::Detaching;
use super::look::{Float, Item, Number, float_type, is_writable, look, look_at, parts, place_of};
use super::looked::Looked;
use super::pinned::{Output, Own};
use super::table::{Entry, Places, Use, ask};
use super::{Argument, BORROWS, Borrows, not_writable};

/// Does not compile if one of the types is `Send`: then two implementations of `Of` apply, and the
/// compiler cannot tell which `either` is meant.
macro_rules! stay_in_their_thread {
    ($($of:ty),* $(,)?) => {$(
        const _: fn() = || {
            trait Of<Which> {
                fn either() {}
            }
            struct SendToo;
            impl<T> Of<()> for T {}
            impl<T: Send> Of<SendToo> for T {}
            <$of as Of<_>>::either();
        };
    )*};
}

// A scope's closure is `Send`, so it can neither capture these nor send them to another thread.
stay_in_their_thread!(
    Python<'static>,
    &'static Bound<'static, PyAny>,
    &'static Reading<'static>,
    &'static mut Writing<'static>,
    &'static Detaching<'static>,
);

/// An object that a call locks before it looks at arrays.
pub trait Guarded {
    type Inner;

    /// Locks the object, and calls `f` with it. The GIL may be released before `f` and after it, not
    /// during it.
    fn guard<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Self::Inner) -> PyResult<R>,
    ) -> PyResult<R>;
}

/// For a call that works on its arguments alone: there is nothing to lock.
pub struct Unguarded;

impl Guarded for Unguarded {
    type Inner = ();

    #[inline(always)]
    fn guard<R>(&self, _py: Python<'_>, f: impl FnOnce(&mut ()) -> PyResult<R>) -> PyResult<R> {
        f(&mut ())
    }
}

/// Locks `guarded`, and calls `f` with what looks at arrays to be read, with the GIL held.
#[inline(always)]
pub fn reading<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    borrows: Borrows,
    f: impl for<'s> FnOnce(&mut G::Inner, &'s Reading<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| f(inner, &Reading { py, borrows }))
}

/// Locks `guarded`, and calls `f` with what looks at arrays to be read and written, with the GIL held.
#[inline(always)]
pub(crate) fn writing<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    f: impl for<'s> FnOnce(&mut G::Inner, &mut Writing<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| {
        let places = Places::new();
        f(inner, &mut Writing(Entry::new(py, &places)))
    })
}

/// Looks at the arrays that a call reads.
pub trait Looks {
    /// `argument` as a C-contiguous array of `T` of the given shape, or with the dimensions of `D`.
    fn read<'x, T: Item, D: Dimension + 'x>(
        &'x self,
        argument: Argument<'x>,
        shape: Option<&[usize]>,
    ) -> PyResult<Looked<'x, T, D>>;
}

/// Looks at the arrays of a call that writes to none.
pub struct Reading<'py> {
    py: Python<'py>,
    borrows: Borrows,
}

impl Looks for Reading<'_> {
    #[inline(always)]
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
    /// The floating-point type of an array.
    pub(crate) fn float_type(&self, mut argument: Argument<'_>) -> PyResult<Float> {
        float_type(self.py, &mut argument)
    }
}

/// Looks at the arrays of a call that writes to some.
pub(crate) struct Writing<'s>(Entry<'s>);

impl Looks for Writing<'_> {
    #[inline(always)]
    fn read<'x, T: Item, D: Dimension + 'x>(
        &'x self,
        argument: Argument<'x>,
        shape: Option<&[usize]>,
    ) -> PyResult<Looked<'x, T, D>> {
        let array = argument.look(shape)?;
        let looked = Looked::new(BORROWS, argument.name, array)?;
        let place = place_of(array);
        self.0.note(argument.name, "an input", place, Use::Read)?;
        Ok(looked)
    }
}

impl<'s> Writing<'s> {
    /// The elements of `output`, which must be an array of `T` of this shape, to be written to. Their
    /// present values are unspecified. Those of a new array are not uninitialised memory to the
    /// compiler, since they come from NumPy's allocator, which it does not see through.
    #[inline(always)]
    pub(crate) fn write<'x, T: Number, D: Dimension>(
        &'x self,
        output: &'x mut Output,
        shape: &[usize],
    ) -> PyResult<&'x mut [T]> {
        let (data, len) = self.look_at::<T, D>(output, shape, Use::Write)?;
        // SAFETY: `len` elements lie there. No other slice has them: the place of a caller's array is
        // in the table, and a new array is reached through `output` alone, which stays borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// Looks at `output` for a call that writes to it after it has ended reading. So the arrays that
    /// are read may overlap with it.
    #[inline(always)]
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

    #[inline(always)]
    fn look_at<T: Item, D: Dimension>(
        &self,
        output: &Output,
        shape: &[usize],
        how: Use,
    ) -> PyResult<(*mut T, usize)> {
        let (name, array) = match output {
            Output::Given(name, array) => {
                let array = array.bind(self.0.py);
                (*name, look::<T, D>(name, array, Some(shape))?)
            }
            Output::New(Own(array)) => {
                let array = array.bind(self.0.py);
                ("", look_at::<T, D>("", array, Some(shape))?)
            }
        };
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

/// An array that is written to after the last read of the scope.
pub(crate) struct Later<'x, T: Item> {
    data: *mut T,
    len: usize,
    _of: PhantomData<&'x mut T>,
}

impl<T: Number> Later<'_, T> {
    /// The elements, to be written to. Borrowing the scope mutably ends all slices to be read.
    #[inline(always)]
    pub(crate) fn now<'x>(&'x mut self, _scope: &'x mut Writing<'_>) -> &'x mut [T] {
        // SAFETY: as in `Writing::write`; the scope is borrowed mutably, so no slice to be read is
        // left.
        unsafe { slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Later<'_, bool> {
    /// Copies `flags`, of the same length, to the array. Borrowing the scope mutably ends all slices to
    /// be read.
    #[inline(always)]
    pub(crate) fn copy_from(self, flags: &[bool], _scope: &mut Writing<'_>) {
        assert_eq!(self.len, flags.len());
        // SAFETY: as above. The present elements may be any bytes, and are not read.
        unsafe { self.data.copy_from(flags.as_ptr(), self.len) };
    }
}
