//! `rlox._core`: the whole public surface of the extension, on one screen.

mod arrays;
mod build_info;
mod crossing;
mod env;
mod errors;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::build_info::build_info;
    #[pymodule_export]
    use super::crossing::{count_crossings, roundtrip, take_crossings};
    #[pymodule_export]
    use super::env::{VecEnv, builtin_envs};
}
