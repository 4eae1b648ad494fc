//! Infos of a step in which episodes ended, made when somebody first reads them: P28's optimised form.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::env::stepping::Finals;

use crate::env::VecEnv;

pub(crate) enum EndInfos {}

impl EndInfos {
    pub(crate) fn of<'py>(
        _env: &Bound<'py, VecEnv>,
        _finals: Finals,
    ) -> PyResult<Bound<'py, PyDict>> {
        unimplemented!("P28: EndInfosOptimized is not written yet")
    }
}
