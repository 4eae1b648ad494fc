//! P26's seam: in pages of which size the memory of a large column lies.

pub mod baseline;
pub mod optimized;

use super::BufferWiring;
use crate::RloxError;
use crate::memory::Zero;

/// `rows * width` zeros, by the twin that `W` names. The system hands out their pages when they are first
/// touched.
///
/// # Errors
/// If there is no memory for them.
pub(super) fn zeroed<W: BufferWiring, T: Zero>(
    rows: usize,
    width: usize,
) -> Result<Vec<T>, RloxError> {
    let len = rows.checked_mul(width);
    let zeros = len.and_then(|len| match W::P26 {
        true => optimized::zeros(len).ok(),
        false => baseline::zeros(len).ok(),
    });
    zeros.ok_or_else(|| too_large::<T>(rows, width))
}

/// The error for a `capacity` that is too large: there is no memory for its rows of `width` elements.
pub(super) fn too_large<T>(capacity: usize, width: usize) -> RloxError {
    RloxError::argument(
        "capacity",
        format!(
            "is {capacity}, whose rows of {width} x {} bytes do not fit into memory; choose a \
             smaller one",
            size_of::<T>()
        ),
    )
}
