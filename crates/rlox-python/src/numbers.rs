//! Numbers in, with errors that name the argument.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// `value`, which counts something, as the core takes it; the core refuses a zero where it must.
pub(crate) fn size(argument: &str, value: i64) -> PyResult<usize> {
    usize::try_from(value)
        .map_err(|_| PyValueError::new_err(format!("{argument}: is {value}, expected at least 1")))
}

/// `value` as the seed of a stream of random numbers.
pub(crate) fn seed(value: i128) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| {
        PyValueError::new_err(format!(
            "seed: is {value}, expected an integer in [0, 2**64)"
        ))
    })
}
