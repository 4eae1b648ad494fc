//! Makes new arrays, and raises MemoryError where there is no memory for one. The numpy crate's own
//! functions panic then.

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
    // SAFETY: `shape` has `n` numbers. The function takes over the reference to the descriptor. It
    // returns an array of this type and shape, or null with an error set, also for a shape that is too
    // large.
    unsafe { checked(py, PY_ARRAY_API.PyArray_Zeros(py, n, dims, dtype, 0)) }
}

/// An array of numbers whose values are unspecified.
pub(crate) fn unset<'py, T: Number, D: Dimension, const N: usize>(
    py: Python<'py>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    anything(py, shape)
}

/// An array whose elements are unspecified; objects are null pointers.
fn anything<'py, T: Element, D: Dimension, const N: usize>(
    py: Python<'py>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    // SAFETY: with a null pointer the array gets memory of its own.
    unsafe { over(py, shape, ptr::null_mut()) }
}

/// An array with a copy of `values` in it.
pub(crate) fn copied<'py, T: Item>(
    py: Python<'py>,
    values: &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = anything::<T, Ix1, 1>(py, [values.len()])?;
    // SAFETY: the array is new, so nobody else uses it, and has `values.len()` contiguous elements.
    unsafe {
        array
            .data()
            .copy_from_nonoverlapping(values.as_ptr(), values.len());
    }
    Ok(array)
}

/// The base of an array that lies in a vector of Rust's: it keeps the vector alive.
#[pyclass(frozen)]
struct Memory {
    _values: Box<dyn Any + Send + Sync>,
}

/// `values` as an array of this shape, without a copy. Panics if the shape has another number of
/// elements.
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
    // SAFETY: the assertion says that as many elements lie at `data`. They stay there while the array
    // has its base.
    unsafe {
        let array = over::<T, numpy::IxDyn, N>(py, shape, data)?;
        set_base(&array, memory.into_any())?;
        Ok(array.into_any())
    }
}

/// An array for each row of `values`, which has `width` elements. The arrays are views of one new
/// array, their base.
pub(crate) fn rows<'py, T: Item>(
    py: Python<'py>,
    values: &[T],
    width: usize,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyArray1<T>>>>> {
    let of = copied(py, values)?;
    let (first, n) = (of.data(), values.len().checked_div(width).unwrap_or(0));
    Ok((0..n).map(move |row| {
        // SAFETY: the row lies in `of`, which is its base and so lives as long as it. NumPy's `resize`
        // refuses an array that others refer to; with `refcheck=False` it breaks views of any array in
        // the same way.
        unsafe {
            let row = over::<T, Ix1, 1>(py, [width], first.add(row * width))?;
            set_base(&row, of.clone().into_any())?;
            Ok(row)
        }
    }))
}

/// An array of `n` objects: at the given indices the given arrays, at the others None.
pub(crate) fn objects<'py, T: Item>(
    py: Python<'py>,
    n: usize,
    given: impl Iterator<Item = PyResult<(usize, Bound<'py, PyArray1<T>>)>>,
) -> PyResult<Bound<'py, PyArray1<Py<PyAny>>>> {
    // NumPy makes objects as null pointers, and reads a null pointer as None. So None need not be
    // written, whose reference would be counted for each element.
    let array = anything::<Py<PyAny>, Ix1, 1>(py, [n])?;
    for one in given {
        let (i, one) = one?;
        assert!(i < n);
        // SAFETY: the array is new, so nobody else uses it, and has more than `i` elements. Each is
        // null or a pointer to an object, as is an `Option<Py>`.
        unsafe { *array.data().cast::<Option<Py<PyAny>>>().add(i) = Some(one.into_any().unbind()) };
    }
    Ok(array)
}

/// An empty dictionary.
pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the function returns a new dictionary, or null with an error set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyDict_New())?.cast_into_unchecked()) }
}

/// An array of this shape over the elements at `data`, or over memory of its own if that is null.
///
/// # Safety
/// `data` is null, or as many elements lie there and stay there as long as the array lives.
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
    // SAFETY: the caller answers for `data`; `shape` has `n` numbers. The function takes over the
    // reference to the descriptor. It returns an array of this type and shape, or null with an error
    // set, also for a shape that is too large.
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

/// Makes `base` the base of an array, which keeps its memory alive.
///
/// # Safety
/// The array is new, and lies in memory of `base`.
unsafe fn set_base<T: Element, D: Dimension>(
    array: &Bound<'_, PyArray<T, D>>,
    base: Bound<'_, PyAny>,
) -> PyResult<()> {
    let (py, array) = (array.py(), array.as_ptr().cast::<PyArrayObject>());
    // SAFETY: the caller has made the array, and it has no base yet. The function takes over the
    // reference to `base`, also if it fails.
    match unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array, base.into_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

/// A new array, or the error that NumPy has set.
///
/// # Safety
/// `array` is a new reference to an array of these elements and dimensions, or null with an error set.
unsafe fn checked<'py, T, D>(
    py: Python<'py>,
    array: *mut ffi::PyObject,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    // SAFETY: the caller says so.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked()) }
}
