//! What this extension was built from.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How this extension was built: `version`, cargo `profile`, `rustc`, and `features`, the active
/// optimisations.
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("profile", env!("RLOX_PROFILE"))?;
    info.set_item("rustc", env!("RLOX_RUSTC"))?;
    info.set_item("features", rlox_core::switchboard::ACTIVE.to_vec())?;
    Ok(info)
}
