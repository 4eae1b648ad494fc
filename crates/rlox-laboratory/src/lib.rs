//! `rlox._laboratory`: an extension for development, which no wheel has. It gives Python the pairs: for
//! each optimisation, refused ones included, its two forms side by side, to be compared and timed. A layer
//! of a network can be timed by itself.

#[path = "../../rlox-python/src/build_info.rs"]
mod build_info;
mod layer;
mod numpy;
mod pairs;

use pyo3::prelude::*;

// `gil_used` as in the extension that ships, since what is measured here is the same binding.
#[pymodule(gil_used = true)]
mod _laboratory {
    use super::*;

    #[pymodule_export]
    use super::build_info::{build_info, instructions};
    #[pymodule_export]
    use super::layer::Layer;
    #[pymodule_export]
    use super::pairs::module;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        rlox_binding::init(module)
    }
}
