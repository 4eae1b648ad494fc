//! The scopes of calls that keep the interpreter: see the module above.
//!
//! They are inlined whatever the compiler thinks of it: a push, which is one closure in another, takes
//! a twelfth less so.

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

/// Does not compile where one of the types is `Send`: the call would be of two traits then.
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

// What the closures of scopes, which are `Send`, cannot have from around them, nor pass on.
stay_in_their_thread!(
    Python<'static>,
    &'static Bound<'static, PyAny>,
    &'static Reading<'static>,
    &'static mut Writing<'static>,
    &'static Detaching<'static>,
);

/// What a call locks before it looks at arrays.
pub trait Guarded {
    type Inner;

    /// `f` with what is locked. May let go of the interpreter before `f`, and afterwards.
    fn guard<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Self::Inner) -> PyResult<R>,
    ) -> PyResult<R>;
}

/// Nothing, for a call that works on its arguments alone.
pub struct Unguarded;

impl Guarded for Unguarded {
    type Inner = ();

    #[inline(always)]
    fn guard<R>(&self, _py: Python<'_>, f: impl FnOnce(&mut ()) -> PyResult<R>) -> PyResult<R> {
        f(&mut ())
    }
}

/// `f` with what looks at arrays that are read, while the interpreter is kept.
#[inline(always)]
pub fn reading<G: Guarded, R>(
    py: Python<'_>,
    guarded: &G,
    borrows: Borrows,
    f: impl for<'s> FnOnce(&mut G::Inner, &'s Reading<'s>) -> PyResult<R> + Send,
) -> PyResult<R> {
    guarded.guard(py, |inner| f(inner, &Reading { py, borrows }))
}

/// `f` with what looks at arrays that are read and written to, while the interpreter is kept.
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

/// What looks at arrays that a call reads.
pub trait Looks {
    /// `argument` as a C-contiguous array of `T` with the dimensions of `D`, or of `shape`.
    fn read<'x, T: Item, D: Dimension + 'x>(
        &'x self,
        argument: Argument<'x>,
        shape: Option<&[usize]>,
    ) -> PyResult<Looked<'x, T, D>>;
}

/// Of a call that writes to no array.
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
    /// Which of the two floating-point types an array holds.
    pub(crate) fn float_type(&self, mut argument: Argument<'_>) -> PyResult<Float> {
        float_type(self.py, &mut argument)
    }
}

/// Of a call that writes to some.
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
    /// `output` as an array of numbers of this shape, to be written to. What is in it may be anything:
    /// a new array comes from NumPy's allocator, so to the compiler it holds something.
    #[inline(always)]
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

/// An array that is written to when nothing is read any more.
pub(crate) struct Later<'x, T: Item> {
    data: *mut T,
    len: usize,
    _of: PhantomData<&'x mut T>,
}

impl<T: Number> Later<'_, T> {
    /// The array, now that nothing is read.
    #[inline(always)]
    pub(crate) fn now<'x>(&'x mut self, _scope: &'x mut Writing<'_>) -> &'x mut [T] {
        // SAFETY: as in `Writing::write`; what the scope has given to be read is no longer borrowed.
        unsafe { slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Later<'_, bool> {
    /// Copies as many flags as there are, now that nothing is read.
    #[inline(always)]
    pub(crate) fn copy_from(self, flags: &[bool], _scope: &mut Writing<'_>) {
        assert_eq!(self.len, flags.len());
        // SAFETY: as above. What is in it is not read: it could be any bytes.
        unsafe { self.data.copy_from(flags.as_ptr(), self.len) };
    }
}
