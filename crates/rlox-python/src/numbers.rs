//! Conversion of arguments that are numbers or sequences of numbers, with errors that name the
//! argument.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::PySequence_Check;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::to_py;

/// The items of a sequence of Python's. PyO3's conversion to a `Vec` allocates as much as the object
/// says that it is long, and aborts if that is too much. This one allocates as items come, and raises
/// MemoryError.
pub struct List<T>(pub Vec<T>);

/// The most items of a sequence that is neither a list nor a tuple, since another sequence may never
/// end.
const MOST: usize = 1 << 20;

impl<'a, 'py, T: FromPyObjectOwned<'py>> FromPyObject<'a, 'py> for List<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_known = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        #[allow(unsafe_code, reason = "PyO3's own check refuses NumPy's arrays")]
        // SAFETY: the object is alive, since it is borrowed here.
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

/// `value`, which counts something, as the core's type. ValueError if that cannot hold it; the core refuses
/// 0 where it must.
pub(crate) fn size(argument: &str, value: impl Into<i128>) -> PyResult<usize> {
    let (value, most) = (value.into(), usize::MAX);
    usize::try_from(value).map_err(|_| {
        PyValueError::new_err(format!(
            "{argument}: is {value}, expected an integer from 1 to {most}"
        ))
    })
}

/// `value` as the seed of a random generator; ValueError outside of [0, 2**64).
pub(crate) fn seed(value: i128) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| {
        PyValueError::new_err(format!(
            "seed: is {value}, expected an integer in [0, 2**64)"
        ))
    })
}
