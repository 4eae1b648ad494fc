//! NumPy arrays in and out, with errors that name the argument and the remedy.
#![allow(
    unsafe_code,
    reason = "new arrays are written without being zeroed first, or without being filled with None"
)]

use std::ops::Range;
use std::slice;

use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NPY_ARRAY_WRITEABLE};
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray,
    PyReadwriteArray, PyUntypedArray, PyUntypedArrayMethods, dtype,
    ndarray::{ArrayView1, Dimension, IntoDimension},
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rlox_core::switchboard::P23;

/// How a call that keeps the interpreter all the while holds the arrays that it reads: P23's seam.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Borrows {
    /// Before: every array is entered into the table of borrows that extensions share, and taken out
    /// of it again.
    Counted,
    /// After: nothing of Python's runs meanwhile, so there is nothing to be told. A call in another
    /// thread that has let go of the interpreter does run: what it writes (parameters under an
    /// update, kept samples) is not to be read here, nor what it reads to be written, and no error
    /// says so any more.
    Trusted,
}

/// This build's.
pub(crate) const BORROWS: Borrows = if P23 {
    Borrows::Trusted
} else {
    Borrows::Counted
};

/// An array that a call reads while it keeps the interpreter.
pub(crate) struct Read<'py, T: Element, D: Dimension> {
    array: Bound<'py, PyArray<T, D>>,
    _counted: Option<PyReadonlyArray<'py, T, D>>,
}

impl<T: Element, D: Dimension> Read<'_, T, D> {
    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    #[allow(
        unsafe_code,
        reason = "the table of borrows costs more than a small call does"
    )]
    pub(crate) fn as_slice(&self) -> PyResult<&[T]> {
        // SAFETY: from here on the call keeps the interpreter, and the slice ends with it, so that
        // nothing of Python's writes meanwhile; and what the call itself writes to arrays it
        // writes through `Write::fill`, when it reads no more, or to `Results`, which lie apart.
        Ok(unsafe { self.array.as_slice() }?)
    }
}

/// `object` as a C-contiguous array of `T` of any shape, to be read while the interpreter is kept;
/// `argument` is its public name.
pub(crate) fn any_shape<'py, T: Element, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Read<'py, T, D>> {
    read(BORROWS, argument, object, None)
}

/// The same with the given shape.
pub(crate) fn input<'py, T: Element, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Read<'py, T, D>> {
    read(BORROWS, argument, object, Some(shape))
}

/// Both, whatever the build's choice for P23 is.
pub(crate) fn read<'py, T: Element, D: Dimension>(
    borrows: Borrows,
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: Option<&[usize]>,
) -> PyResult<Read<'py, T, D>> {
    let array = typed(argument, object, shape)?;
    Ok(Read {
        _counted: match borrows {
            Borrows::Counted => Some(readonly(argument, array)?),
            Borrows::Trusted => None,
        },
        array: array.clone(),
    })
}

/// An array that results are copied into.
pub(crate) struct Write<'py, T: Element, D: Dimension>(Bound<'py, PyArray<T, D>>);

/// `object` as an array to copy results of a given shape into, under the same conditions.
pub(crate) fn target<'py, T: Element, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Write<'py, T, D>> {
    let array = typed::<T, D>(argument, object, Some(shape))?;
    if BORROWS == Borrows::Counted {
        array.try_readwrite().map_err(|_| not_writable(argument))?;
    } else if !is_writable(array.as_untyped()) {
        return Err(not_writable(argument));
    }
    Ok(Write(array.clone()))
}

impl<T: Element, D: Dimension> Write<'_, T, D> {
    /// Writes with `fill`, which sees none but the core's memory besides.
    #[allow(
        unsafe_code,
        reason = "the table of borrows costs more than a small call does"
    )]
    pub(crate) fn fill<R>(&self, fill: impl FnOnce(&mut [T]) -> R) -> PyResult<R> {
        // SAFETY: the interpreter is kept, so nothing of Python's runs, and the core's memory is
        // none of its arrays'; slices of other arrays are read no more.
        Ok(fill(unsafe { self.0.as_slice_mut() }?))
    }
}

/// Whether nobody has marked it read-only.
#[allow(unsafe_code, reason = "NumPy's flags are fields of its struct")]
pub(crate) fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the array is alive.
    unsafe { (*_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags & NPY_ARRAY_WRITEABLE != 0 }
}

/// Arrays for calls that let go of the interpreter: others may ask for the same ones meanwhile, so
/// every borrow is counted, and a conflict is an error.
pub(crate) mod shared {
    use super::*;

    /// As [`super::any_shape`].
    pub(crate) fn any_shape<'py, T: Element, D: Dimension>(
        argument: &str,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<PyReadonlyArray<'py, T, D>> {
        readonly(argument, typed(argument, object, None)?)
    }

    /// As [`super::input`].
    pub(crate) fn input<'py, T: Element, D: Dimension>(
        argument: &str,
        object: &Bound<'py, PyAny>,
        shape: &[usize],
    ) -> PyResult<PyReadonlyArray<'py, T, D>> {
        readonly(argument, typed(argument, object, Some(shape))?)
    }

    /// `object` as an array to write results into, under the same conditions.
    pub(crate) fn output<'py, T: Element, D: Dimension>(
        argument: &str,
        object: &Bound<'py, PyAny>,
        shape: &[usize],
    ) -> PyResult<PyReadwriteArray<'py, T, D>> {
        typed(argument, object, Some(shape))?
            .try_readwrite()
            .map_err(|_| not_writable(argument))
    }
}

fn not_writable(argument: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: is read-only or in use elsewhere"))
}

/// What a call writes its results into: an array that the caller gave for it, or a new one.
pub(crate) enum Results<'py, T: Element, D: Dimension> {
    Given(PyReadwriteArray<'py, T, D>),
    New(Bound<'py, PyArray<T, D>>),
}

impl<'py, T: Element + Copy, D: Dimension> Results<'py, T, D> {
    /// `out`, whose public name is `argument`, or where it is not given a new array; of this shape,
    /// and apart from what is read at the addresses of `inputs`.
    pub(crate) fn new<const N: usize>(
        py: Python<'py>,
        argument: &str,
        out: Option<&Bound<'py, PyAny>>,
        shape: [usize; N],
        inputs: &[Range<usize>],
    ) -> PyResult<Self>
    where
        [usize; N]: IntoDimension<Dim = D>,
    {
        let Some(out) = out else {
            // SAFETY: plain numbers, which are written before anybody reads them.
            return Ok(Self::New(unsafe { PyArray::new(py, shape, false) }));
        };
        let array = typed::<T, D>(argument, out, Some(&shape))?;
        let start = array.data() as usize;
        let place = start..start + size_of::<T>() * array.len();
        if inputs.iter().any(|read| overlap(read, &place)) {
            return Err(PyValueError::new_err(format!(
                "{argument}: shares memory with an input; pass an array of its own"
            )));
        }
        shared::output(argument, out, &shape).map(Self::Given)
    }

    /// All elements, of which every one is to be written.
    pub(crate) fn as_mut_slice(&mut self) -> PyResult<&mut [T]> {
        Ok(match self {
            Self::Given(array) => array.as_slice_mut()?,
            // SAFETY: nobody else has the array yet. What its memory holds is unknown, but it comes
            // from NumPy's allocator, so to the compiler it holds something.
            Self::New(array) => unsafe { array.as_slice_mut()? },
        })
    }

    /// The array.
    pub(crate) fn into_any(self) -> Bound<'py, PyAny> {
        match self {
            Self::Given(array) => {
                let array: &Bound<'py, PyArray<T, D>> = &array;
                array.clone().into_any()
            }
            Self::New(array) => array.into_any(),
        }
    }
}

/// Each row of a new array as an array of its own, which lies in it and keeps it.
pub(crate) fn rows<'py, T: Element>(
    of: &Bound<'py, PyArray2<T>>,
) -> PyResult<impl Iterator<Item = Bound<'py, PyArray1<T>>>> {
    // SAFETY: nobody else has the array yet.
    let values = unsafe { of.as_slice()? };
    Ok(values.chunks_exact(of.shape()[1]).map(|row| {
        // SAFETY: the array that the row lies in is the new one's base, and is not resized while that
        // lives: NumPy refuses it to arrays that are referred to.
        unsafe { PyArray1::borrow_from_array(&ArrayView1::from(row), of.clone().into_any()) }
    }))
}

/// An array of `n` objects: the arrays given at their places, None at the others.
pub(crate) fn objects<'py, T: Element>(
    py: Python<'py>,
    n: usize,
    given: impl Iterator<Item = (usize, Bound<'py, PyArray1<T>>)>,
) -> Bound<'py, PyArray1<Py<PyAny>>> {
    // SAFETY: NumPy makes objects as null pointers, and reads these as None. That spares counting a
    // thousand references to None, and giving them up again.
    let array = unsafe { PyArray1::<Py<PyAny>>::new(py, [n], false) };
    let places = array.data().cast::<Option<Py<PyAny>>>();
    // SAFETY: nobody else has the array; an `Option` of a reference is a pointer that may be null.
    let places = unsafe { slice::from_raw_parts_mut(places, n) };
    for (i, array) in given {
        places[i] = Some(array.into_any().unbind());
    }
    array
}

/// The addresses of a slice.
pub(crate) fn addresses<T>(slice: &[T]) -> Range<usize> {
    let ends = slice.as_ptr_range();
    ends.start as usize..ends.end as usize
}

/// Refuses memory that is written to and named twice: arrays that came to the same memory by
/// different ways are not known to NumPy as such. `written` and `read` are public names, and addresses.
pub(crate) fn apart(
    written: &[(&str, Range<usize>)],
    read: &[(&str, Range<usize>)],
) -> PyResult<()> {
    for (i, (argument, this)) in written.iter().enumerate() {
        let mut others = written[..i].iter().chain(read);
        if let Some((other, _)) = others.find(|(_, other)| overlap(this, other)) {
            return Err(PyValueError::new_err(format!(
                "{argument}: shares memory with {other}; pass an array of its own"
            )));
        }
    }
    Ok(())
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The two floating-point types that the training math takes.
pub(crate) enum Float {
    F32,
    F64,
}

/// Which of them `object`, the first array of a call, holds; the other arrays follow it.
pub(crate) fn float_type(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Float> {
    let py = object.py();
    let descriptor = untyped(argument, object, "float64")?.dtype();
    if descriptor.is_equiv_to(&dtype::<f64>(py)) {
        Ok(Float::F64)
    } else if descriptor.is_equiv_to(&dtype::<f32>(py)) {
        Ok(Float::F32)
    } else {
        Err(PyTypeError::new_err(format!(
            "{argument}: has dtype {descriptor}, expected float64 or float32; convert with \
             .astype(np.float64)"
        )))
    }
}

fn typed<'a, 'py, T: Element, D: Dimension>(
    argument: &str,
    object: &'a Bound<'py, PyAny>,
    shape: Option<&[usize]>,
) -> PyResult<&'a Bound<'py, PyArray<T, D>>> {
    let array = match object.cast::<PyArray<T, D>>() {
        Ok(array) if shape.is_none_or(|shape| array.shape() == shape) => array,
        _ => return Err(mismatch::<T, D>(argument, object, shape)),
    };
    if array.is_c_contiguous() && array.is_aligned() {
        return Ok(array);
    }
    Err(PyValueError::new_err(format!(
        "{argument}: is not C-contiguous; pass {argument}.copy()"
    )))
}

fn readonly<'py, T: Element, D: Dimension>(
    argument: &str,
    array: &Bound<'py, PyArray<T, D>>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    array
        .try_readonly()
        .map_err(|_| PyValueError::new_err(format!("{argument}: is being written to elsewhere")))
}

/// In what `object` differs from an array of `T` with the dimensions of `D`, or of `shape`.
#[cold]
fn mismatch<T: Element, D: Dimension>(
    argument: &str,
    object: &Bound<'_, PyAny>,
    shape: Option<&[usize]>,
) -> PyErr {
    let expected = dtype::<T>(object.py());
    let array = match untyped(argument, object, &expected.to_string()) {
        Ok(array) => array,
        Err(error) => return error,
    };
    if !array.dtype().is_equiv_to(&expected) {
        return PyTypeError::new_err(format!(
            "{argument}: has dtype {}, expected {expected}; convert with .astype(np.{expected})",
            array.dtype()
        ));
    }
    let expected = match shape {
        Some(shape) => tuple(shape),
        None => format!("{} dimension(s); use .reshape", D::NDIM.unwrap_or_default()),
    };
    PyValueError::new_err(format!(
        "{argument}: has shape {}, expected {expected}",
        tuple(array.shape()),
    ))
}

fn untyped<'a, 'py>(
    argument: &str,
    object: &'a Bound<'py, PyAny>,
    expected: &str,
) -> PyResult<&'a Bound<'py, PyUntypedArray>> {
    object.cast::<PyUntypedArray>().map_err(|_| {
        let found = object
            .get_type()
            .name()
            .map_or_else(|_| "something else".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "{argument}: is a {found}, expected a NumPy array; convert with \
             np.asarray({argument}, dtype=np.{expected})"
        ))
    })
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
