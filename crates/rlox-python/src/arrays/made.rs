//! New arrays; where there is no memory for one, MemoryError.

use std::any::Any;
use std::ffi::c_int;
use std::ptr;

use numpy::npyffi::{
    NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object, npy_intp,
};
use numpy::{
    Element, Ix1, PyArray, PyArray1, PyArrayDescrMethods, PyArrayMethods, ndarray::Dimension,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::look::{Item, Number};

/// An array of zeros.
pub(crate) fn zeros<'py, T: Item, D: Dimension, const N: usize>(
    py: Python<'py>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let mut shape = shape.map(|n| n as npy_intp);
    let dtype = T::get_dtype(py).into_dtype_ptr();
    let (n, dims) = (N as c_int, shape.as_mut_ptr());
    // SAFETY: a shape that is too large is an error of NumPy's; the descriptor is given away.
    unsafe { checked(py, PY_ARRAY_API.PyArray_Zeros(py, n, dims, dtype, 0)) }
}

/// An array of numbers, which may be any.
pub(crate) fn unset<'py, T: Number, D: Dimension, const N: usize>(
    py: Python<'py>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    anything(py, shape)
}

/// An array whose elements hold anything: bytes, or objects that are null pointers.
fn anything<'py, T: Element, D: Dimension, const N: usize>(
    py: Python<'py>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    // SAFETY: it gets memory of its own.
    unsafe { over(py, shape, ptr::null_mut()) }
}

/// An array with a copy of `values` in it.
pub(crate) fn copied<'py, T: Item>(
    py: Python<'py>,
    values: &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = anything::<T, Ix1, 1>(py, [values.len()])?;
    // SAFETY: nobody else has the array, which has so many elements in order.
    unsafe {
        array
            .data()
            .copy_from_nonoverlapping(values.as_ptr(), values.len());
    }
    Ok(array)
}

/// Memory of the core's that an array lies in.
#[pyclass(frozen)]
struct Memory {
    _values: Box<dyn Any + Send + Sync>,
}

/// `values` as an array of this shape, which has as many elements.
pub(crate) fn owned<'py, T: Item + 'static, const N: usize>(
    py: Python<'py>,
    mut values: Vec<T>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyAny>> {
    assert!(shape.iter().product::<usize>() == values.len());
    let data = values.as_mut_ptr();
    let memory = Memory {
        _values: Box::new(values),
    };
    let memory = Bound::new(py, memory)?;
    // SAFETY: so many elements lie there, and stay while the array has its base.
    unsafe {
        let array = over::<T, numpy::IxDyn, N>(py, shape, data)?;
        set_base(&array, memory.into_any())?;
        Ok(array.into_any())
    }
}

/// Each row of `values`, of `width` elements, as an array of its own; all of them lie in one new array,
/// which each keeps.
pub(crate) fn rows<'py, T: Item>(
    py: Python<'py>,
    values: &[T],
    width: usize,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyArray1<T>>>>> {
    let of = copied(py, values)?;
    let (first, n) = (of.data(), values.len().checked_div(width).unwrap_or(0));
    Ok((0..n).map(move |row| {
        // SAFETY: the row lies in `of`, which is its base, and is not resized while that lives: NumPy
        // refuses it to arrays that are referred to.
        unsafe {
            let row = over::<T, Ix1, 1>(py, [width], first.add(row * width))?;
            set_base(&row, of.clone().into_any())?;
            Ok(row)
        }
    }))
}

/// An array of `n` objects: the arrays given at their places, None at the others.
pub(crate) fn objects<'py, T: Item>(
    py: Python<'py>,
    n: usize,
    given: impl Iterator<Item = PyResult<(usize, Bound<'py, PyArray1<T>>)>>,
) -> PyResult<Bound<'py, PyArray1<Py<PyAny>>>> {
    // NumPy makes objects as null pointers, and reads these as None. That spares counting a thousand
    // references to None, and giving them up again.
    let array = anything::<Py<PyAny>, Ix1, 1>(py, [n])?;
    for one in given {
        let (i, one) = one?;
        assert!(i < n);
        // SAFETY: nobody else has the array; an `Option` of a reference is a pointer that may be null.
        unsafe { *array.data().cast::<Option<Py<PyAny>>>().add(i) = Some(one.into_any().unbind()) };
    }
    Ok(array)
}

/// An empty dictionary.
pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: a new dictionary, or null with an error set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyDict_New())?.cast_into_unchecked()) }
}

/// An array over `data`, or where that is null over memory of its own.
///
/// # Safety
/// As many elements lie at `data`, and stay there as long as the array does.
unsafe fn over<'py, T: Element, D: Dimension, const N: usize>(
    py: Python<'py>,
    shape: [usize; N],
    data: *mut T,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let mut shape = shape.map(|n| n as npy_intp);
    let dtype = T::get_dtype(py).into_dtype_ptr();
    let flags = if data.is_null() {
        0
    } else {
        NPY_ARRAY_WRITEABLE
    };
    let (n, dims, nothing) = (N as c_int, shape.as_mut_ptr(), ptr::null_mut());
    // SAFETY: the caller's; a shape that is too large is an error of NumPy's, and the descriptor is
    // given away.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            dtype,
            n,
            dims,
            nothing,
            data.cast(),
            flags,
            ptr::null_mut(),
        );
        checked(py, array)
    }
}

/// Makes `base` what keeps the memory of an array.
///
/// # Safety
/// The array is new, and lies in memory of `base`.
unsafe fn set_base<T: Element, D: Dimension>(
    array: &Bound<'_, PyArray<T, D>>,
    base: Bound<'_, PyAny>,
) -> PyResult<()> {
    let (py, array) = (array.py(), array.as_ptr().cast::<PyArrayObject>());
    // SAFETY: the caller's; the reference is given away, also on an error.
    match unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array, base.into_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

/// A new array, or the error that NumPy has set.
///
/// # Safety
/// It is of these elements and dimensions, or null with an error set.
unsafe fn checked<'py, T, D>(
    py: Python<'py>,
    array: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    // SAFETY: the caller's.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked()) }
}
