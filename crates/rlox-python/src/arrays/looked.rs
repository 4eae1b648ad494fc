//! An array that a scope has looked at, and the check that bytes are bools.

use std::marker::PhantomData;
use std::ops::Deref;
use std::slice;

use numpy::{PyArray, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods, ndarray::Dimension};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::look::{Item, Number, parts};
use super::{Borrows, being_written};

/// An array as it was when a scope looked at it, which stays true until the scope ends.
pub struct Looked<'x, T: Item, D: Dimension> {
    name: &'static str,
    data: *const T,
    len: usize,
    shape: &'x [usize],
    _counted: Option<PyReadonlyArray<'x, T, D>>,
    _of: PhantomData<&'x T>,
}

impl<'x, T: Item, D: Dimension> Looked<'x, T, D> {
    #[inline(always)]
    pub(super) fn new(
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

    #[inline(always)]
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

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements lay there when the array was looked at, and no Python code has run
        // since. A call that has released the GIL does not write to them: `table` was asked.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }
}

impl<'x, D: Dimension> Looked<'x, bool, D> {
    /// The elements as bytes, of which some may be neither 0 nor 1.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'x [u8] {
        // SAFETY: as above; any byte is a `u8`.
        unsafe { slice::from_raw_parts(self.data.cast(), self.len) }
    }

    /// The elements; ValueError for a byte other than 0 and 1.
    #[inline(always)]
    pub(crate) fn flags(&self) -> PyResult<&'x [bool]> {
        flags(self.name, self.bytes())
    }
}

/// `bytes` as bools; ValueError for a byte other than 0 and 1. NumPy's bools may be any bytes, while in
/// Rust another one is undefined behaviour.
pub(super) fn flags<'a>(argument: &str, bytes: &'a [u8]) -> PyResult<&'a [bool]> {
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
