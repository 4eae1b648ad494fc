//! Numbers in, with errors that name the argument.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::PySequence_Check;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::to_py;

/// A sequence of Python's. Unlike a `Vec` it does not take the word of an object for how long it is,
/// and takes memory as it goes.
pub struct List<T>(pub Vec<T>);

/// Items of a sequence that is neither a list nor a tuple: of another one the end may never come.
const MOST: usize = 1 << 20;

impl<'a, 'py, T: FromPyObjectOwned<'py>> FromPyObject<'a, 'py> for List<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_known = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        #[allow(unsafe_code, reason = "pyo3's own check leaves arrays out")]
        // SAFETY: the object is alive.
        let is_sequence = unsafe { PySequence_Check(object.as_ptr()) } != 0;
        if object.is_instance_of::<PyString>() || !is_sequence {
            let found = object.get_type().name()?;
            let problem = format!("is a {found}, expected a sequence of integers");
            return Err(PyTypeError::new_err(problem));
        }
        let mut items = Vec::new();
        for item in object.try_iter()? {
            if items.len() == MOST && !is_known {
                let problem = format!("a sequence has more than {MOST} items; pass a list");
                return Err(PyValueError::new_err(problem));
            }
            rlox_core::memory::reserve_more(&mut items, 1).map_err(to_py)?;
            items.push(item?.extract::<T>().map_err(Into::into)?);
        }
        Ok(Self(items))
    }
}

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
