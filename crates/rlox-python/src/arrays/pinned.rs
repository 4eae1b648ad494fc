//! Arrays that a call uses while it has released the GIL, and arrays that it writes results to.
//!
//! Other threads must not resize such an array, which moves its memory. NumPy's `resize` refuses an
//! array that has weak references, and no code can resize an array that it cannot reach. If the array
//! is a view, this holds of the array that owns the memory.

use std::borrow::Borrow;

use numpy::{PyArray, PyUntypedArray, ndarray::Dimension};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;

use super::look::{Number, owner};
use super::{Argument, made};

/// Weak references to an array and to the owner of its memory.
type References = (Py<PyWeakrefReference>, Option<Py<PyWeakrefReference>>);

/// An argument whose memory cannot be resized, since weak references to it are held.
pub(crate) struct Pinned<'a> {
    pub(super) argument: Argument<'a>,
    weak: PyResult<References>,
}

impl<'a> Pinned<'a> {
    /// Pins `object`. It must come before a scope, since making a weak reference may run Python code.
    /// An object that is no array is an error when it is looked at.
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

    /// The error if a weak reference could not be made.
    pub(super) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.weak
            .as_ref()
            .map(drop)
            .map_err(|error| error.clone_ref(py))
    }
}

/// An array that no Python code can reach: it is new, or [`super::Recycled`] alone has it besides. It
/// is given to a caller once.
pub(crate) struct Own(pub(super) Py<PyUntypedArray>);

impl Own {
    /// `array` must be such an array.
    #[inline]
    pub(super) fn new<T, D>(array: Bound<'_, PyArray<T, D>>) -> Self {
        // SAFETY: a `PyArray` is an untyped array.
        Self(unsafe { array.into_any().cast_into_unchecked() }.unbind())
    }

    /// The array, which belongs to the caller of the binding from now on.
    #[inline]
    pub(crate) fn give(self) -> Py<PyAny> {
        self.0.into_any()
    }

    /// The array, to be given to a caller and written to again by later calls.
    pub(crate) fn keep(self, py: Python<'_>) -> PyResult<Kept> {
        let weak = PyWeakrefReference::new(self.0.bind(py).as_any())?.unbind();
        Ok(Kept {
            array: self.0,
            _weak: weak,
        })
    }
}

/// An array that a caller was given and that later calls write to again. A weak reference to it is
/// held.
pub struct Kept {
    pub(super) array: Py<PyUntypedArray>,
    _weak: Py<PyWeakrefReference>,
}

impl Borrow<Py<PyAny>> for Kept {
    fn borrow(&self) -> &Py<PyAny> {
        self.array.as_any()
    }
}

/// The array that a call writes a result to.
pub(crate) enum Output {
    /// The caller's, with its public name.
    Given(&'static str, Py<PyAny>),
    /// A new one.
    New(Own),
}

impl Output {
    /// The caller's array `out`, with the public name `name`.
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

    /// The array with the result in it.
    #[inline]
    pub(crate) fn give(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::Given(_, array) => array.into_bound(py),
            Self::New(own) => own.give().into_bound(py),
        }
    }
}
