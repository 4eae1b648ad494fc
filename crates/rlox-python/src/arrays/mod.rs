//! NumPy's memory, which this module alone reads and writes.
//!
//! A call names its arrays ([`Argument`]), which does not look at them yet, and enters a scope:
//! [`reading`], [`writing`] or [`detaching`]. The scope first locks what the call works on, which may
//! let other threads run. Only then does it hand out what looks at arrays (dtype, shape, order,
//! alignment, whether they may be written to, what they overlap) and gives slices of them.
//!
//! Inside a scope Python cannot run, so what was seen of an array stays true while its slice is there:
//! a scope's closure must be `Send`, which neither Python's token nor a reference to one of its objects
//! is, and the scope gives out neither. Slices cannot leave the scope: their lifetime ends with it.
//! The compiler does not see a closure that calls `Python::attach`; a test of the architecture names the
//! few files that may. Nor does it see one that owns an object (`Py`, [`Output`], an error) and drops it
//! there, which may run a finaliser: closures borrow what they use, and the same test refuses `move`. All
//! this holds while Python has its global lock: an interpreter without it is refused when the module is
//! imported.
//!
//! [`Detaching`] lets go of the interpreter, for work on slices that takes longer. Its arrays are
//! [`Pinned`]: NumPy does not resize them meanwhile. The addresses stand in a table (`table`), which
//! every scope asks before it reads or writes: two threads that use one memory, one of them writing to
//! it, get an error. Code that does not ask can still write there, as it can while NumPy itself has
//! let go of the interpreter: an assignment `a[0] = 1` in another thread, or `a.__setstate__`, which
//! frees the memory. The core takes such numbers as they come; whatever decides about memory (bools,
//! indices) it copies or checks.
//!
//! What refuses which mistake, each of which was once made:
//!
//! | mistake | who refuses it |
//! |---|---|
//! | to look at an array, then wait for a lock, then read | the compiler: looking takes a scope, within which there is no token to wait with |
//! | two arrays that are written to in one memory, or one that is read and one that is written to | the table, which each array of a scope that writes is entered into |
//! | bools of other bytes than 0 and 1 | the compiler: no slice of bools without [`Looked::flags`], which checks, or a copy or clearing |
//! | sizes that memory cannot hold | `errors::reserved` and the core's `memory`; `made` passes on NumPy's error |
//! | an array that a call without the interpreter reads or writes, used in another thread | the table |
//! | an interpreter without its lock | the import of the module |
//! | an array that NumPy could not make, taken for one | `made`, which alone makes arrays |
//! | a fork while a thread has locked something | `lock`: short work is waited for, longer work is an error in the child |
//! | environments that are lost with a collector | `lent`: they are given back at their next use |
//! | kept arrays that no longer do | [`Refilled`], by which they are looked at each time |
#![allow(
    unsafe_code,
    reason = "NumPy's memory is reached by pointers, and its table of borrows costs more than a small call"
)]

mod detached;
mod look;
mod looked;
pub(crate) mod made;
mod pinned;
mod recycled;
mod scope;
mod table;

use numpy::ndarray::Dimension;
use numpy::{PyArray, PyArray1, PyArrayDescrMethods, PyArrayMethods, dtype};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::switchboard::P23;

pub(crate) use detached::{Detaching, Refilled, detaching};
pub(crate) use look::{Float, Item, Number, float_type, shape_of};
use look::{look, look_at};
pub(crate) use looked::Looked;
pub(crate) use pinned::{Kept, Output, Own, Pinned};
pub use recycled::FULL;
pub(crate) use recycled::{ROOM, Recycled, unless_taken};
pub(crate) use scope::{Guarded, Reading, Writing, writing};
pub use scope::{Looks, Unguarded, reading};
pub(crate) use table::forked;

use crate::errors::to_py;
use crate::names::names;

/// An argument of a call, by its public name. It is looked at in a scope only.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    name: &'static str,
    object: &'a Bound<'a, PyAny>,
    /// Whether it was seen to be an array.
    is_array: bool,
}

// SAFETY: the object is reached by scopes alone, which stay in the thread that has the interpreter, and by
// `shape_of` and `float_type`, which ask for the interpreter's token.
unsafe impl Send for Argument<'_> {}
// SAFETY: the same.
unsafe impl Sync for Argument<'_> {}

impl<'a> Argument<'a> {
    /// The argument `name` of a call.
    #[inline]
    pub fn new(name: &'static str, object: &'a Bound<'_, PyAny>) -> Self {
        Self {
            name,
            object,
            is_array: false,
        }
    }

    /// The argument as an array, as [`look`] has it.
    #[inline]
    fn look<T: Item, D: Dimension>(
        self,
        shape: Option<&[usize]>,
    ) -> PyResult<&'a Bound<'a, PyArray<T, D>>> {
        if self.is_array {
            // SAFETY: no object that is an array ever stops being one.
            look_at(self.name, unsafe { self.object.cast_unchecked() }, shape)
        } else {
            look(self.name, self.object, shape)
        }
    }
}

/// How a call that keeps the interpreter all the while holds the arrays that it reads: P23's seam.
#[derive(Clone, Copy, PartialEq)]
pub enum Borrows {
    /// Before: every array is entered into the table of borrows that extensions share, and taken out
    /// of it again.
    Counted,
    /// After: nothing of Python's runs meanwhile, so there is nobody to be told, and to be asked only
    /// a call that has let go of the interpreter.
    Trusted,
}

/// This build's.
pub const BORROWS: Borrows = if P23 {
    Borrows::Trusted
} else {
    Borrows::Counted
};

/// Makes what is made but once: a fork by one thread while another makes it would leave the child
/// waiting for it for ever.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    rlox_core::prepare().map_err(to_py)?;
    names(py);
    dtype::<f32>(py).itemsize(); // finds NumPy's functions, and its version
    let array = made::owned(py, Vec::<f32>::new(), [0])?;
    // The table of borrows is found, or made.
    drop(array.cast::<PyArray1<f32>>()?.try_readonly());
    Ok(())
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
