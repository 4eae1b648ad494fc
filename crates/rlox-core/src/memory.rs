//! Whether there is memory for what a caller asks for. A failed allocation would end the process.

/// Whether there is memory for `rows * width` elements.
pub(crate) fn fits<T>(rows: usize, width: usize) -> bool {
    rows.checked_mul(width)
        .is_some_and(|len| Vec::<T>::new().try_reserve_exact(len).is_ok())
}
