//! NumPy arrays in, with errors that name the argument and the remedy.

use numpy::{
    Element, PyArray, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray, PyReadwriteArray,
    PyUntypedArray, PyUntypedArrayMethods, dtype, ndarray::Dimension,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// `object` as a C-contiguous array of `T` with the given shape; `argument` is its public name.
pub(crate) fn input<'py, T: Element, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    typed(argument, object, shape)?
        .try_readonly()
        .map_err(|_| PyValueError::new_err(format!("{argument}: is being written to elsewhere")))
}

/// `object` as an array to write results into, under the same conditions.
pub(crate) fn output<'py, T: Element, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<PyReadwriteArray<'py, T, D>> {
    typed(argument, object, shape)?
        .try_readwrite()
        .map_err(|_| PyValueError::new_err(format!("{argument}: is read-only or in use elsewhere")))
}

fn typed<'a, 'py, T: Element, D: Dimension>(
    argument: &str,
    object: &'a Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<&'a Bound<'py, PyArray<T, D>>> {
    if let Ok(array) = object.cast::<PyArray<T, D>>()
        && array.is_c_contiguous()
        && array.shape() == shape
    {
        return Ok(array);
    }
    Err(explain::<T>(argument, object, shape))
}

/// Why `object` is not what was asked for.
fn explain<T: Element>(argument: &str, object: &Bound<'_, PyAny>, shape: &[usize]) -> PyErr {
    let expected = dtype::<T>(object.py());
    let Ok(array) = object.cast::<PyUntypedArray>() else {
        let found = object
            .get_type()
            .name()
            .map_or_else(|_| "something else".to_owned(), |name| name.to_string());
        return PyTypeError::new_err(format!(
            "{argument}: is a {found}, expected a NumPy array of {expected} with shape {}",
            tuple(shape)
        ));
    };
    if !array.dtype().is_equiv_to(&expected) {
        return PyTypeError::new_err(format!(
            "{argument}: has dtype {}, expected {expected}; convert with .astype(np.{expected})",
            array.dtype()
        ));
    }
    if array.shape() != shape {
        return PyValueError::new_err(format!(
            "{argument}: has shape {}, expected {}",
            tuple(array.shape()),
            tuple(shape)
        ));
    }
    PyValueError::new_err(format!(
        "{argument}: is not C-contiguous; pass np.ascontiguousarray({argument})"
    ))
}

/// A shape as Python writes it.
fn tuple(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!(
            "({})",
            shape
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}
