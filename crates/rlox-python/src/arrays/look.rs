//! What an array is (dtype, shape, order), read from the fields of NumPy's struct.
//!
//! No Python code runs while an array is looked at, whatever its class. So a call may look with a
//! buffer locked, and what it has seen holds until it releases the GIL. Error messages are made when
//! Python asks for them, since writing a dtype out may run any code.

use std::ops::Range;
use std::os::raw::c_int;
use std::ptr::NonNull;

use numpy::npyffi::{
    _PyArray_GET_ITEM_DATA, _PyDataType_GET_ITEM_DATA, NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO,
    NPY_ARRAY_OWNDATA, NPY_ARRAY_WRITEABLE, NPY_TYPES, PyArrayObject_fields,
};
use numpy::{
    Element, PyArray, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods, ndarray::Dimension,
};
use pyo3::PyErrArguments;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::Py_REFCNT;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::Argument;

/// The type of an array's elements, with NumPy's type numbers for it. Some types have two numbers on a
/// platform, as `long` and `long long` do.
pub trait Item: Element + Copy {
    const TYPES: [NPY_TYPES; 2];
}

/// A type of elements for which all bytes are valid. `bool` is not one: an array of bools may hold
/// other bytes than 0 and 1.
pub trait Number: Item {}

impl Number for f32 {}
impl Number for f64 {}
impl Number for i64 {}
impl Number for u8 {}

impl Item for f32 {
    const TYPES: [NPY_TYPES; 2] = [NPY_TYPES::NPY_FLOAT; 2];
}
impl Item for f64 {
    const TYPES: [NPY_TYPES; 2] = [NPY_TYPES::NPY_DOUBLE; 2];
}
impl Item for i64 {
    #[cfg(all(unix, target_pointer_width = "64"))]
    const TYPES: [NPY_TYPES; 2] = [NPY_TYPES::NPY_LONG, NPY_TYPES::NPY_LONGLONG];
    #[cfg(not(all(unix, target_pointer_width = "64")))]
    const TYPES: [NPY_TYPES; 2] = [NPY_TYPES::NPY_LONGLONG; 2];
}
impl Item for u8 {
    const TYPES: [NPY_TYPES; 2] = [NPY_TYPES::NPY_UBYTE; 2];
}
impl Item for bool {
    const TYPES: [NPY_TYPES; 2] = [NPY_TYPES::NPY_BOOL; 2];
}

/// Whether the elements of an array are of type `T`, in the machine's own byte order.
pub(super) fn is_of<T: Item>(array: &Bound<'_, PyUntypedArray>) -> bool {
    const SWAPPED: u8 = if cfg!(target_endian = "little") {
        b'>'
    } else {
        b'<'
    };
    // SAFETY: the array is alive, and its descriptor lives as long as it.
    let descriptor = unsafe { &*_PyDataType_GET_ITEM_DATA(fields(array).descr) };
    let number = descriptor.type_num;
    T::TYPES.iter().any(|&known| known as c_int == number) && descriptor.byteorder as u8 != SWAPPED
}

/// NumPy's struct of an array.
fn fields<'a>(array: &'a Bound<'_, PyUntypedArray>) -> &'a PyArrayObject_fields {
    // SAFETY: the array is alive. Its fields change only while other code runs, and nobody here lets it
    // run while using the reference.
    unsafe { &*_PyArray_GET_ITEM_DATA(array.as_array_ptr()) }
}

/// Whether an array is C-contiguous and aligned.
pub(super) fn is_plain(array: &Bound<'_, PyUntypedArray>) -> bool {
    fields(array).flags & NPY_ARRAY_CARRAY_RO == NPY_ARRAY_CARRAY_RO
}

/// Whether an array is not marked read-only.
pub(super) fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    fields(array).flags & NPY_ARRAY_WRITEABLE != 0
}

/// `object` as a C-contiguous array of `T` of the given shape, or with the dimensions of `D`. The error
/// names `argument`, what was found, and a remedy.
pub(super) fn look<'a, 'py, T: Item, D: Dimension>(
    argument: &str,
    object: &'a Bound<'py, PyAny>,
    shape: Option<&[usize]>,
) -> PyResult<&'a Bound<'py, PyArray<T, D>>> {
    match object.cast() {
        Ok(array) => look_at(argument, array, shape),
        Err(_) => Err(differs::<T, D>(argument, object, shape)),
    }
}

/// [`look`] at what is known to be an array.
pub(super) fn look_at<'a, 'py, T: Item, D: Dimension>(
    argument: &str,
    array: &'a Bound<'py, PyUntypedArray>,
    shape: Option<&[usize]>,
) -> PyResult<&'a Bound<'py, PyArray<T, D>>> {
    let object = array.as_any();
    let fits = match shape {
        Some(shape) => are_equal(array.shape(), shape),
        None => D::NDIM.is_none_or(|n| n == array.ndim()),
    };
    if !fits || !is_of::<T>(array) {
        return Err(differs::<T, D>(argument, object, shape));
    }
    if !is_plain(array) {
        return Err(not_contiguous(argument));
    }
    // SAFETY: it was seen to have elements of `T` and the dimensions.
    Ok(unsafe { object.cast_unchecked() })
}

/// Whether two shapes are equal. For two or three numbers the loop takes fewer instructions than the
/// call that compares slices.
#[inline]
fn are_equal(one: &[usize], other: &[usize]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one == other)
}

/// The shape of `argument` as an array of `T` with `N` dimensions, those of `D`. A call needs it to
/// make its results before it enters a scope; the scope looks at the array again.
pub(crate) fn shape_of<T: Item, D: Dimension, const N: usize>(
    _py: Python<'_>,
    argument: &mut Argument<'_>,
) -> PyResult<[usize; N]> {
    let shape = argument.look::<T, D>(None)?.shape();
    argument.is_array = true; // an object that is an array stays one
    <[usize; N]>::try_from(shape).map_err(|_| differs::<T, D>(argument.name, argument.object, None))
}

/// A pointer to the elements of an array, and their number. The pointer is neither null nor
/// misaligned; NumPy's may be either where there are no elements.
#[inline]
pub(super) fn parts<T: Item, D: Dimension>(array: &Bound<'_, PyArray<T, D>>) -> (*mut T, usize) {
    match array.len() {
        0 => (NonNull::dangling().as_ptr(), 0),
        len => (array.data(), len),
    }
}

/// The array that owns the memory of the view `array`; None if `array` is not a view of an array.
pub(super) fn owner<'py>(array: &Bound<'py, PyUntypedArray>) -> Option<Bound<'py, PyUntypedArray>> {
    let mut owner = None;
    loop {
        let base = fields(owner.as_ref().unwrap_or(array)).base;
        // SAFETY: the base is null or an object, which lives as long as the array that refers to it.
        let base = unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), base) };
        match base.and_then(|base| base.cast_into().ok()) {
            Some(base) => owner = Some(base),
            None => return owner,
        }
    }
}

/// The addresses of an array's elements.
#[inline]
pub(super) fn place_of<T: Item, D: Dimension>(array: &Bound<'_, PyArray<T, D>>) -> Range<usize> {
    let (data, len) = parts(array);
    data as usize..data as usize + len * size_of::<T>()
}

/// A pointer to the elements of `array`. None if it is not a writable, contiguous array of `len`
/// elements of `T`, of whatever shape.
#[inline]
pub(super) fn look_any<T: Item>(array: &Bound<'_, PyUntypedArray>, len: usize) -> Option<*mut T> {
    let fields = fields(array);
    if fields.flags & NPY_ARRAY_CARRAY != NPY_ARRAY_CARRAY
        || !is_of::<T>(array)
        || array.len() != len
    {
        return None;
    }
    Some(match len {
        0 => NonNull::dangling().as_ptr(),
        _ => fields.data.cast(),
    })
}

/// Whether there is any other reference to `object` than this one. A view of an array, or a buffer of
/// its memory, refers to the array.
pub(super) fn is_held(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive.
    unsafe { Py_REFCNT(object.as_ptr()) != 1 }
}

/// Whether an array is as NumPy makes it: it owns its memory, is writable and contiguous, and has no
/// weak references.
pub(super) fn is_as_made(array: &Bound<'_, PyUntypedArray>) -> bool {
    const AS_MADE: i32 = NPY_ARRAY_CARRAY | NPY_ARRAY_OWNDATA;
    let fields = fields(array);
    fields.flags & AS_MADE == AS_MADE && fields.base.is_null() && fields.weakreflist.is_null()
}

#[cold]
fn not_contiguous(argument: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{argument}: is not C-contiguous; pass {argument}.copy()"
    ))
}

/// The two floating-point types that the functions of training take.
#[derive(Clone, Copy)]
pub(crate) enum Float {
    F32,
    F64,
}

/// The floating-point type of `argument`, the first array of a call. The other arrays must have the
/// same.
pub(crate) fn float_type(_py: Python<'_>, argument: &mut Argument<'_>) -> PyResult<Float> {
    let array = argument.object.cast::<PyUntypedArray>();
    argument.is_array = array.is_ok(); // an object that is an array stays one
    match array {
        Ok(array) if is_of::<f64>(array) => Ok(Float::F64),
        Ok(array) if is_of::<f32>(array) => Ok(Float::F32),
        _ => Err(PyTypeError::new_err(Message {
            argument: argument.name.to_owned(),
            found: argument.object.clone().unbind(),
            expected: "float64",
            or: " or float32",
        })),
    }
}

/// The error for an `object` that is not an array of `T` of the given shape, or with the dimensions of
/// `D`.
#[cold]
fn differs<T: Item, D: Dimension>(
    argument: &str,
    object: &Bound<'_, PyAny>,
    shape: Option<&[usize]>,
) -> PyErr {
    match object.cast::<PyUntypedArray>() {
        Ok(array) if is_of::<T>(array) => PyValueError::new_err(format!(
            "{argument}: has shape {}, expected {}",
            tuple(array.shape()),
            match shape {
                Some(shape) => tuple(shape),
                None => format!("{} dimension(s); use .reshape", D::NDIM.unwrap_or_default()),
            }
        )),
        _ => PyTypeError::new_err(Message {
            argument: argument.to_owned(),
            found: object.clone().unbind(),
            expected: name::<T>(),
            or: "",
        }),
    }
}

/// NumPy's name of a type of elements.
fn name<T: Item>() -> &'static str {
    match T::TYPES[0] {
        NPY_TYPES::NPY_FLOAT => "float32",
        NPY_TYPES::NPY_DOUBLE => "float64",
        NPY_TYPES::NPY_UBYTE => "uint8",
        NPY_TYPES::NPY_BOOL => "bool",
        _ => "int64",
    }
}

/// The message for a wrong dtype, or for what is no array. `or` names another dtype that would do.
struct Message {
    argument: String,
    found: Py<PyAny>,
    expected: &'static str,
    or: &'static str,
}

impl PyErrArguments for Message {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        let Self {
            argument,
            found,
            expected,
            or,
        } = self;
        let found = found.bind(py);
        let message = match found.cast::<PyUntypedArray>() {
            Ok(array) => format!(
                "{argument}: has dtype {}, expected {expected}{or}; convert with \
                 .astype(np.{expected})",
                array.dtype()
            ),
            Err(_) => format!(
                "{argument}: is a {}, expected a NumPy array; convert with \
                 np.asarray({argument}, dtype=np.{expected})",
                (found.get_type().name())
                    .map_or_else(|_| "something else".to_owned(), |name| name.to_string())
            ),
        };
        PyString::new(py, &message).into_any().unbind()
    }
}

/// A shape as Python writes a tuple.
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
