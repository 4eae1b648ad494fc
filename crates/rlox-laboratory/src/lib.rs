//! `rlox._laboratory`, for development alone: the twins of every optimisation, those that were refused
//! included, side by side.

#[path = "../../rlox-python/src/build_info.rs"]
mod build_info;
mod numpy;
mod pairs;

use pyo3::prelude::*;

// As the extension that ships: what is measured here is the same binding.
#[pymodule(gil_used = true)]
mod _laboratory {
    use super::*;

    #[pymodule_export]
    use super::build_info::{build_info, instructions};
    #[pymodule_export]
    use super::pairs::module;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        rlox_binding::init(module)
    }
}
