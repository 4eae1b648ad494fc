//! Turns the core's errors into Python's exceptions, and allocates with MemoryError instead of
//! aborting.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use rlox_core::RloxError;

/// ValueError for a bad argument, RuntimeError for a call that the object's state does not allow,
/// MemoryError where there is no memory.
pub fn to_py(error: RloxError) -> PyErr {
    let message = error.to_string();
    match error {
        RloxError::InvalidArgument { .. } => PyValueError::new_err(message),
        RloxError::InvalidState(_) => PyRuntimeError::new_err(message),
        RloxError::NoMemory { .. } => PyMemoryError::new_err(message),
    }
}

/// A copy of `values`; MemoryError where there is no memory for it.
pub(crate) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>, PyErr> {
    let mut copy = reserved(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// An empty vector with room for `len` elements; MemoryError where there is no memory for them.
pub fn reserved<T>(len: usize) -> Result<Vec<T>, PyErr> {
    rlox_core::memory::reserved(len).map_err(to_py)
}
