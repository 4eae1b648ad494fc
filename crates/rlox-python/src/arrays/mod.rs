//! NumPy arrays in and out, with errors that name the argument and the remedy.
//!
//! `look` says what an array is, `held` is for calls that let go of the interpreter, `made` makes new
//! arrays; what is here is for calls that keep it.
#![allow(
    unsafe_code,
    reason = "the table of borrows costs more than a small call does"
)]

mod held;
mod look;
pub(crate) mod made;

use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use numpy::{
    IxDyn, PyArray, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray, PyUntypedArray,
    PyUntypedArrayMethods, dtype, ndarray::Dimension,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::switchboard::P23;

pub(crate) use held::{Hold, Refill, forked};
pub(crate) use look::{Float, Item, Number, addresses, float_type};
use look::{is_of, is_plain, is_writable, look};

use crate::errors::to_py;
use crate::names::names;

/// Makes what is made but once: a fork by one thread while another makes it would leave the child
/// waiting for it for ever.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    rlox_core::prepare().map_err(to_py)?;
    names(py);
    dtype::<f32>(py).itemsize(); // finds NumPy's functions, and its version
    drop(made::owned(py, Vec::<f32>::new(), [0])?);
    Ok(())
}

/// How a call that keeps the interpreter all the while holds the arrays that it reads: P23's seam.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Borrows {
    /// Before: every array is entered into the table of borrows that extensions share, and taken out
    /// of it again.
    Counted,
    /// After: nothing of Python's runs meanwhile, so there is nobody to be told, and to be asked only
    /// a call that has let go of the interpreter (`held`).
    Trusted,
}

/// This build's.
pub(crate) const BORROWS: Borrows = if P23 {
    Borrows::Trusted
} else {
    Borrows::Counted
};

/// An array that a call reads while it keeps the interpreter.
pub(crate) struct Read<'py, T: Item, D: Dimension> {
    array: Bound<'py, PyArray<T, D>>,
    _counted: Option<PyReadonlyArray<'py, T, D>>,
}

impl<T: Item, D: Dimension> Read<'_, T, D> {
    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }
}

impl<T: Number, D: Dimension> Read<'_, T, D> {
    /// Its elements.
    ///
    /// # Safety
    /// The interpreter has been kept since the array was looked at, and is until the slice ends;
    /// meanwhile the call writes to no array but such as lie apart from it.
    pub(crate) unsafe fn as_slice(&self) -> &[T] {
        let (data, len) = parts(&self.array);
        // SAFETY: so many elements lie there, since the array is as it was looked at; nothing of
        // Python's writes meanwhile, and what else writes was asked.
        unsafe { slice::from_raw_parts(data, len) }
    }
}

impl<D: Dimension> Read<'_, bool, D> {
    /// Its elements, of which some may be neither 0 nor 1.
    ///
    /// # Safety
    /// As [`Read::as_slice`].
    pub(crate) unsafe fn as_bytes(&self) -> &[u8] {
        let (data, len) = parts(&self.array);
        // SAFETY: as there; any byte is a `u8`.
        unsafe { slice::from_raw_parts(data.cast(), len) }
    }

    /// Its elements; ValueError for a byte that is no bool.
    ///
    /// # Safety
    /// As [`Read::as_slice`].
    pub(crate) unsafe fn as_flags(&self, argument: &str) -> PyResult<&[bool]> {
        // SAFETY: the caller's.
        flags(argument, unsafe { self.as_bytes() })
    }
}

/// `bytes` as bools. NumPy makes bools of any bytes; in Rust another one than 0 or 1 is none.
pub(crate) fn flags<'a>(argument: &str, bytes: &'a [u8]) -> PyResult<&'a [bool]> {
    let (eights, rest) = bytes.as_chunks::<8>();
    let odd = eights.iter().fold(0, |odd, &eight| {
        odd | (u64::from_ne_bytes(eight) & !0x0101_0101_0101_0101)
    });
    if odd != 0 || rest.iter().any(|&byte| byte > 1) {
        let found = bytes.iter().find(|&&byte| byte > 1).unwrap_or(&0);
        return Err(PyValueError::new_err(format!(
            "{argument}: holds a byte of {found}, expected 0 or 1; pass \
             {argument}.view(np.uint8) != 0"
        )));
    }
    // SAFETY: each byte is 0 or 1.
    Ok(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
}

/// `object` as a C-contiguous array of `T` of any shape, to be read while the interpreter is kept;
/// `argument` is its public name.
pub(crate) fn any_shape<'py, T: Item, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Read<'py, T, D>> {
    read(BORROWS, argument, object, None)
}

/// The same with the given shape.
pub(crate) fn input<'py, T: Item, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Read<'py, T, D>> {
    read(BORROWS, argument, object, Some(shape))
}

/// Both, whatever the build's choice for P23 is. Nothing of Python's runs.
pub(crate) fn read<'py, T: Item, D: Dimension>(
    borrows: Borrows,
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: Option<&[usize]>,
) -> PyResult<Read<'py, T, D>> {
    let array = look(argument, object, shape)?;
    held::check(argument, place_of(array), false)?;
    Ok(Read {
        _counted: match borrows {
            Borrows::Counted => Some(readonly(argument, array)?),
            Borrows::Trusted => None,
        },
        array: array.clone(),
    })
}

fn readonly<'py, T: Item, D: Dimension>(
    argument: &str,
    array: &Bound<'py, PyArray<T, D>>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    array.try_readonly().map_err(|_| being_written(argument))
}

/// An array that results are copied into.
pub(crate) struct Write<'py, T: Item, D: Dimension>(Bound<'py, PyArray<T, D>>);

/// `object` as an array to copy results of a given shape into, under the same conditions.
pub(crate) fn target<'py, T: Item, D: Dimension>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Write<'py, T, D>> {
    let array = look::<T, D>(argument, object, Some(shape))?;
    if !is_writable(array.as_untyped()) {
        return Err(not_writable(argument));
    }
    held::check(argument, place_of(array), true)?;
    if BORROWS == Borrows::Counted {
        array.try_readwrite().map_err(|_| not_writable(argument))?;
    }
    Ok(Write(array.clone()))
}

impl<T: Number, D: Dimension> Write<'_, T, D> {
    /// Writes with `fill`.
    ///
    /// # Safety
    /// The interpreter has been kept since the array was looked at, and is until `fill` returns, which
    /// sees none but the core's memory besides.
    pub(crate) unsafe fn fill<R>(&self, fill: impl FnOnce(&mut [T]) -> R) -> R {
        let (data, len) = parts(&self.0);
        // SAFETY: so many elements lie there, since the array is as it was looked at; nothing of
        // Python's runs meanwhile, and what else reads or writes was asked.
        fill(unsafe { slice::from_raw_parts_mut(data, len) })
    }
}

impl<T: Item, D: Dimension> Write<'_, T, D> {
    /// The addresses that are written to.
    pub(crate) fn place(&self) -> Range<usize> {
        place_of(&self.0)
    }

    /// Copies as many elements as it has.
    ///
    /// # Safety
    /// As [`Write::fill`].
    pub(crate) unsafe fn copy_from(&self, values: &[T]) {
        let (data, len) = parts(&self.0);
        assert_eq!(len, values.len());
        // SAFETY: as there. What was in it is not read: of bools that could be any bytes.
        unsafe { data.copy_from(values.as_ptr(), len) };
    }
}

/// What a call writes its results into: an array that the caller gave for it, or a new one.
pub(crate) struct Results<'py, T: Number, D: Dimension>(Bound<'py, PyArray<T, D>>);

impl<'py, T: Number, D: Dimension> Results<'py, T, D> {
    /// `out`, whose public name is `argument`, or where it is not given a new array; of this shape,
    /// and apart from what is read at the addresses of `inputs`.
    pub(crate) fn new<const N: usize>(
        py: Python<'py>,
        argument: &str,
        out: Option<&Bound<'py, PyAny>>,
        shape: [usize; N],
        inputs: &[Range<usize>],
    ) -> PyResult<Self> {
        let Some(out) = out else {
            return made::unset(py, shape).map(Self);
        };
        let Write(array) = target::<T, D>(argument, out, &shape)?;
        let place = place_of(&array);
        if inputs.iter().any(|read| overlap(read, &place)) {
            return Err(shared(argument, "an input"));
        }
        Ok(Self(array))
    }

    /// The addresses that are written to.
    pub(crate) fn place(&self) -> Range<usize> {
        place_of(&self.0)
    }

    /// All elements, of which every one is to be written.
    ///
    /// # Safety
    /// The interpreter has been kept since [`Self::new`], and is until the slice ends; no other slice
    /// is of the same memory.
    pub(crate) unsafe fn as_mut_slice(&mut self) -> &mut [T] {
        let (data, len) = parts(&self.0);
        // SAFETY: so many elements lie there. What a new one holds is unknown, but it comes from
        // NumPy's allocator, so to the compiler it holds something.
        unsafe { slice::from_raw_parts_mut(data, len) }
    }

    /// The array.
    pub(crate) fn into_any(self) -> Bound<'py, PyAny> {
        self.0.into_any()
    }
}

/// The elements of an array of `T`, one after the other in whatever shape, that may be written; None
/// if it is not `len` of them.
pub(crate) fn writable_parts<T: Item>(
    array: &Bound<'_, PyAny>,
    len: usize,
) -> Option<(*mut T, usize)> {
    let array = array.cast::<PyUntypedArray>().ok()?;
    let does = array.len() == len && is_of::<T>(array) && is_plain(array) && is_writable(array);
    // SAFETY: it is of these elements; of the dimensions only the number of elements is asked for.
    does.then(|| parts(unsafe { array.cast_unchecked::<PyArray<T, IxDyn>>() }))
}

/// Where the elements of an array lie, and how many they are.
fn parts<T: Item, D: Dimension>(array: &Bound<'_, PyArray<T, D>>) -> (*mut T, usize) {
    match array.data() {
        data if data.is_null() => (NonNull::dangling().as_ptr(), 0),
        data => (data, array.len()),
    }
}

/// The addresses of an array's elements.
fn place_of<T: Item, D: Dimension>(array: &Bound<'_, PyArray<T, D>>) -> Range<usize> {
    let (data, len) = parts(array);
    data as usize..data as usize + len * size_of::<T>()
}

/// Refuses memory that is written to and named twice: arrays that came to the same memory by
/// different ways are not known to NumPy as such. `written` are public names, and addresses.
pub(crate) fn apart(written: &[(&str, Range<usize>)]) -> PyResult<()> {
    for (i, (argument, this)) in written.iter().enumerate() {
        let mut others = written[..i].iter();
        if let Some((other, _)) = others.find(|(_, other)| overlap(this, other)) {
            return Err(shared(argument, other));
        }
    }
    Ok(())
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cold]
fn not_writable(argument: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: is read-only or in use elsewhere"))
}

#[cold]
fn being_written(argument: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: is being written to elsewhere"))
}

#[cold]
fn shared(argument: &str, other: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{argument}: shares memory with {other}; pass an array of its own"
    ))
}
