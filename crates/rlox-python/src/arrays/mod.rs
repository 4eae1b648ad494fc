//! NumPy's memory, which this module alone reads and writes.
//!
//! **Scopes.** A call names its arrays ([`Argument`]), which does not look at them yet, and enters a
//! scope: [`reading`], [`writing`] or [`detaching`]. The scope first locks the object that the call
//! works on, and may wait for the lock with the GIL released, so that other threads run. Only then does
//! it give the call's closure a value that looks at arrays (dtype, shape, order, alignment, whether
//! they are writable, what they overlap) and makes slices of them.
//!
//! **Why slices stay valid.** Python cannot run inside a scope, so what was seen of an array stays
//! true. The closure must be `Send`, and neither `Python<'_>` nor a reference to a Python object is;
//! the scope gives out neither. Slices cannot leave the scope, since their lifetime ends with it. Two
//! things the compiler does not see, and a test of the architecture does: a closure that calls
//! `Python::attach` (the test names the few files that may), and a closure that owns an object (`Py`,
//! [`Output`], an error), whose drop may run a finaliser (the test refuses `move`). All this rests on
//! the GIL: the import of the module refuses an interpreter without it.
//!
//! **Without the GIL.** [`Detaching`] can release the GIL, for work that takes longer. Its arrays are
//! [`Pinned`]: NumPy does not resize them meanwhile. Their addresses stand in a table (`table`), which
//! each scope asks before it reads or writes: if two threads use the same memory and one writes to it,
//! one of them gets an error. Code that does not ask can still write there, as it can while NumPy
//! itself has released the GIL: an assignment `a[0] = 1` in another thread, or `a.__setstate__`, which
//! frees the memory. The core may then read any numbers; what decides about memory (bools, indices) is
//! copied or checked.
//!
//! What refuses which mistake, each of which was once made:
//!
//! | mistake | what refuses it |
//! |---|---|
//! | to look at an array, then wait for a lock, then read | the compiler: looking takes a scope, and waiting takes `Python<'_>`, which a scope does not give |
//! | two arrays that are written to in one memory, or one that is read and one that is written to | the table, which each array of a scope that writes is entered into |
//! | bools of other bytes than 0 and 1 | the compiler: no slice of bools without [`Looked::flags`], which checks, or a copy or clearing |
//! | sizes that memory cannot hold | `errors::reserved` and the core's `memory`; `made` passes on NumPy's error |
//! | an array that a call without the GIL reads or writes, used in another thread | the table |
//! | an interpreter without a GIL | the import of the module |
//! | NumPy's null pointer for an array that it could not make, used as an array | `made`, which alone makes arrays |
//! | a fork while a thread has locked something | `lock`: a fork waits for short work, longer work is an error in the child |
//! | environments that are dropped with a collector | `lent`: they are given back at their next use |
//! | kept arrays whose dtype, size or writability was changed | [`Refilled`], which looks at them each time |
#![allow(
    unsafe_code,
    reason = "NumPy's memory is reached by pointers, and the numpy crate's table of borrows costs more than a small call"
)]

mod detached;
mod look;
mod looked;
pub(crate) mod made;
mod pinned;
mod recycled;
mod results;
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
pub use results::ResultArrays;
pub(crate) use scope::{Guarded, Reading, Writing, writing};
pub use scope::{Looks, Unguarded, reading};
pub(crate) use table::forked;

use crate::errors::to_py;
use crate::names::names;

/// An argument of a call, with its public name for errors. It is looked at only in a scope.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    name: &'static str,
    object: &'a Bound<'a, PyAny>,
    /// Whether it was seen to be an array.
    is_array: bool,
}

// SAFETY: the object is used by scopes alone, which stay in the thread that holds the GIL, and by
// `shape_of` and `float_type`, which take `Python<'_>`.
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
            // SAFETY: it was seen to be an array, and an object that is one stays one.
            look_at(self.name, unsafe { self.object.cast_unchecked() }, shape)
        } else {
            look(self.name, self.object, shape)
        }
    }
}

/// How a call that keeps the GIL all the while guards the arrays that it reads: P23's seam.
#[derive(Clone, Copy, PartialEq)]
pub enum Borrows {
    /// The baseline: each array is entered into the table of borrows that extensions with the numpy
    /// crate share, and taken out of it again.
    Counted,
    /// The optimised form: no other code runs meanwhile, so nothing is entered. It only asks the table
    /// of calls that have released the GIL (`table`).
    Trusted,
}

/// The form that this build uses.
pub const BORROWS: Borrows = if P23 {
    Borrows::Trusted
} else {
    Borrows::Counted
};

/// Initialises what is initialised once, at import. If a thread forked while another one initialised it
/// later, the child would wait for it for ever.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    rlox_core::prepare().map_err(to_py)?;
    names(py);
    dtype::<f32>(py).itemsize(); // looks NumPy's functions and version up
    let array = made::owned(py, Vec::<f32>::new(), [0])?;
    // Looks the table of borrows up, or makes it.
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
