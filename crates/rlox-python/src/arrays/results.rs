//! The arrays that a function returns: P29's seam.

use numpy::ndarray::Dimension;
use pyo3::prelude::*;

use super::{Number, Output};

/// Makes the arrays that a function returns.
pub struct ResultArrays {
    again: bool,
}

impl ResultArrays {
    /// Arrays that are given out `again` when nobody holds them any more, or new ones at every call.
    pub const fn new(again: bool) -> Self {
        Self { again }
    }

    /// An array whose contents are unspecified.
    pub(crate) fn take<T: Number, D: Dimension, const N: usize>(
        &self,
        py: Python<'_>,
        shape: [usize; N],
    ) -> PyResult<Output> {
        if self.again {
            unimplemented!("P29: ResultArraysOptimized is not written yet")
        }
        Output::new::<T, D, N>(py, shape)
    }
}
