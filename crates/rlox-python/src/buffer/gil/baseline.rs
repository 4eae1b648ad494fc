//! The lock is held: no other Python thread runs meanwhile.

use pyo3::prelude::*;

pub(crate) fn sampling<T: Send>(_py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    work()
}
