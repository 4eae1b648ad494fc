//! P26's optimised form: Linux is asked for huge pages, mostly of 2 MB.

use crate::RloxError;
use crate::memory::{self, Zero};

/// `len` zeros. If they are many, their pages are huge where the system has such pages.
///
/// # Errors
/// If there is no memory for them.
pub fn zeros<T: Zero>(len: usize) -> Result<Vec<T>, RloxError> {
    let mut zeros = memory::zeros(len)?;
    memory::ask_for_huge_pages(&mut zeros);
    Ok(zeros)
}
