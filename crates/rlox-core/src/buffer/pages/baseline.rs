//! P26's baseline: pages as the system hands them out, mostly of 4 KB.

use crate::RloxError;
use crate::memory::{self, Zero};

/// `len` zeros.
///
/// # Errors
/// If there is no memory for them.
pub fn zeros<T: Zero>(len: usize) -> Result<Vec<T>, RloxError> {
    memory::zeros(len)
}
