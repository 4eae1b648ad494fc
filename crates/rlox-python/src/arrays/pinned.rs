//! Arrays that a call works with while it has let go of the interpreter, or writes its results into.
//!
//! NumPy resizes neither an array that a weak reference is to, nor one that nobody can reach. Of a view it
//! is the array whose memory is viewed that counts.

use std::borrow::Borrow;

use numpy::{PyArray, PyUntypedArray, ndarray::Dimension};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;

use super::look::{Number, owner};
use super::{Argument, made};

/// Weak references to an array and to the owner of its memory.
type References = (Py<PyWeakrefReference>, Option<Py<PyWeakrefReference>>);

/// An argument whose memory stays where it is, since there are weak references to it.
pub(crate) struct Pinned<'a> {
    pub(super) argument: Argument<'a>,
    weak: PyResult<References>,
}

impl<'a> Pinned<'a> {
    /// Before a scope, since to make a reference may run anything. What is no array is told of when it
    /// is looked at.
    pub(crate) fn new(name: &'static str, object: &'a Bound<'_, PyAny>) -> Self {
        Self {
            argument: Argument::new(name, object),
            weak: Self::references(object),
        }
    }

    fn references(object: &Bound<'_, PyAny>) -> PyResult<References> {
        let weak = |object: &Bound<'_, PyAny>| PyWeakrefReference::new(object).map(Bound::unbind);
        let owner = object.cast().ok().and_then(owner);
        let owner = owner.map(|owner| weak(owner.as_any())).transpose()?;
        Ok((weak(object)?, owner))
    }

    /// An error if a reference could not be made.
    pub(super) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.weak
            .as_ref()
            .map(drop)
            .map_err(|error| error.clone_ref(py))
    }
}

/// An array that nobody but the core refers to; the modules around make it, and it is given away but once.
pub(crate) struct Own(pub(super) Py<PyUntypedArray>);

impl Own {
    /// Of an array that is new, or that `Recycled` alone has besides.
    #[inline]
    pub(super) fn new<T, D>(array: Bound<'_, PyArray<T, D>>) -> Self {
        // SAFETY: it is an array.
        Self(unsafe { array.into_any().cast_into_unchecked() }.unbind())
    }

    /// The array, which is its caller's from here on.
    #[inline]
    pub(crate) fn give(self) -> Py<PyAny> {
        self.0.into_any()
    }

    /// The same array, to be written to again when its caller has it.
    pub(crate) fn keep(self, py: Python<'_>) -> PyResult<Kept> {
        let weak = PyWeakrefReference::new(self.0.bind(py).as_any())?.unbind();
        Ok(Kept {
            array: self.0,
            _weak: weak,
        })
    }
}

/// An array that a caller has been given and that is written to again, with a weak reference to it.
pub struct Kept {
    pub(super) array: Py<PyUntypedArray>,
    _weak: Py<PyWeakrefReference>,
}

impl Borrow<Py<PyAny>> for Kept {
    fn borrow(&self) -> &Py<PyAny> {
        self.array.as_any()
    }
}

/// What a call writes a result into.
pub(crate) enum Output {
    /// An array of the caller's, by its public name.
    Given(&'static str, Py<PyAny>),
    /// One of the core's.
    New(Own),
}

impl Output {
    /// `out`, whose public name is `name`.
    #[inline]
    pub(crate) fn given(name: &'static str, out: &Bound<'_, PyAny>) -> Self {
        Self::Given(name, out.clone().unbind())
    }

    /// A new array of this shape.
    #[inline]
    pub(crate) fn new<T: Number, D: Dimension, const N: usize>(
        py: Python<'_>,
        shape: [usize; N],
    ) -> PyResult<Self> {
        Ok(Self::New(Own::new(made::unset::<T, D, N>(py, shape)?)))
    }

    /// The array.
    #[inline]
    pub(crate) fn give(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::Given(_, array) => array.into_bound(py),
            Self::New(own) => own.give().into_bound(py),
        }
    }
}
