//! The arrays that a function returns: P29's seam.

use std::sync::Mutex;

use numpy::ndarray::Dimension;
use pyo3::prelude::*;

use super::recycled::{FULL, Recycled, unless_taken};
use super::{Number, Output};

/// The largest array that is kept, in bytes. The arrays of a function are kept until the program ends,
/// and larger ones would be missed elsewhere.
const LARGEST: usize = 1 << 22;

/// Makes the arrays that a function returns.
pub struct ResultArrays(Mutex<Recycled>);

impl ResultArrays {
    /// Arrays that are given out `again` when nobody holds them any more, or new ones at every call.
    pub const fn new(again: bool) -> Self {
        Self(Mutex::new(Recycled::new(if again { FULL } else { 0 })))
    }

    /// An array whose contents are unspecified.
    pub(crate) fn take<T: Number, D: Dimension, const N: usize>(
        &self,
        py: Python<'_>,
        shape: [usize; N],
    ) -> PyResult<Output> {
        let bytes = shape
            .iter()
            .fold(size_of::<T>(), |bytes, n| bytes.saturating_mul(*n));
        let none = || Recycled::new(0);
        unless_taken(&self.0, none, |arrays| {
            if bytes > LARGEST || !arrays.has_room() {
                return Output::new::<T, D, N>(py, shape);
            }
            arrays.take::<T, D, N>(py, shape).map(Output::New)
        })
    }
}
