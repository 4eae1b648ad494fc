//! The core's errors as the Python exceptions that a user expects.

use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use rlox_core::RloxError;

/// `ValueError` for a bad argument, `RuntimeError` for a call out of turn.
pub(crate) fn to_py(error: RloxError) -> PyErr {
    let message = error.to_string();
    match error {
        RloxError::InvalidArgument { .. } => PyValueError::new_err(message),
        RloxError::InvalidState(_) => PyRuntimeError::new_err(message),
    }
}
