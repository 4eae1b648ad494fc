//! `build_info`: what this extension was built from, so that a recording can say what it measured.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::switchboard::OPTIMIZATIONS;

/// How this extension was built: a dictionary of its `version`, the `commit` that was checked out,
/// cargo's `profile`, the version of `rustc`, and `features`, a list of the active optimisations; and
/// the `instructions` that it uses here.
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
    info.set_item("instructions", instructions())?;
    Ok(info)
}

/// The instruction set that the extension uses: `"portable"`, `"avx2"` or `"avx512"`. It is the best
/// that the processor has and that the environment variable RLOX_INSTRUCTIONS allows.
#[pyfunction]
pub(crate) fn instructions() -> &'static str {
    rlox_core::instructions()
}
