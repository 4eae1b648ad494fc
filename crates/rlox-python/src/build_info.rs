//! What this extension was built from.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::switchboard::OPTIMIZATIONS;

/// How this extension was built: `version`, `commit` that was checked out, cargo `profile`, `rustc`,
/// and `features`, the active optimisations.
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("commit", env!("RLOX_COMMIT"))?;
    info.set_item("profile", env!("RLOX_PROFILE"))?;
    info.set_item("rustc", env!("RLOX_RUSTC"))?;
    let active = OPTIMIZATIONS
        .iter()
        .filter(|optimization| optimization.active);
    let features: Vec<_> = active.map(|optimization| optimization.feature).collect();
    info.set_item("features", features)?;
    Ok(info)
}

/// The instructions that the loops of this process run with: `"portable"`, `"avx2"` or `"avx512"`. They
/// are the best that the processor has, or that the environment variable RLOX_INSTRUCTIONS allows.
#[pyfunction]
pub(crate) fn instructions() -> &'static str {
    rlox_core::instructions()
}
