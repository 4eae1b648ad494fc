//! `rlox._core`: the whole public surface of the extension, on one screen.

mod acting;
mod arrays;
mod buffer;
mod build_info;
mod crossing;
mod env;
mod errors;
mod fused;
mod lent;
mod llm;
mod lock;
mod names;
mod nn;
mod numbers;
mod pairs;
mod pipeline;
mod sac;
mod spans;
mod training;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

// A Python that can do without its lock is asked to take it here, since a call that keeps the
// interpreter relies on nobody else writing to its arrays meanwhile (`arrays`).
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::acting::ActionSampler;
    #[pymodule_export]
    use super::buffer::prioritized::PrioritizedReplayBuffer;
    #[pymodule_export]
    use super::buffer::replay::ReplayBuffer;
    #[pymodule_export]
    use super::build_info::{build_info, instructions};
    #[pymodule_export]
    use super::crossing::{count_crossings, roundtrip, take_crossings};
    #[pymodule_export]
    use super::env::{VecEnv, builtin_envs};
    #[pymodule_export]
    use super::fused::collect_rollout;
    #[pymodule_export]
    use super::llm::{compute_group_advantages, compute_token_kl};
    #[pymodule_export]
    use super::nn::ppo_update;
    #[pymodule_export]
    use super::pairs::module;
    #[pymodule_export]
    use super::pipeline::AsyncCollector;
    #[pymodule_export]
    use super::sac::SacUpdate;
    #[pymodule_export]
    use super::spans::{record_spans, take_spans};
    #[pymodule_export]
    use super::training::{compute_gae, compute_gae_batched, compute_vtrace};

    /// Python without its lock gives it back to a module that asks for it, unless it was told not to.
    fn require_the_lock(py: Python<'_>) -> PyResult<()> {
        let sys = py.import("sys")?;
        let asked = sys.getattr("_is_gil_enabled"); // from Python 3.13 on
        match asked.and_then(|is_enabled| is_enabled.call0()?.is_truthy()) {
            Ok(false) => Err(PyImportError::new_err(
                "rlox needs Python's global interpreter lock, which PYTHON_GIL=0 or -X gil=0 has \
                 switched off; run Python without that setting",
            )),
            _ => Ok(()),
        }
    }

    /// Collectors end before the interpreter does: their threads could not call Python any more. A fork
    /// waits for what other threads have locked, and has none of our threads.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        require_the_lock(module.py())?;
        super::arrays::prepare(module.py())?;
        // PyO3 has such things, too: those that it takes for a bool of NumPy's, and for an error.
        let wants_a_bool = wrap_pyfunction!(super::crossing::count_crossings, module)?;
        let numpys = module.py().import("numpy")?.getattr("False_")?;
        wants_a_bool.call1((numpys,))?;
        drop(wants_a_bool.call1((module,)));
        let close_all = wrap_pyfunction!(super::pipeline::close_all, module)?;
        module
            .py()
            .import("atexit")?
            .call_method1("register", (close_all,))?;
        // Where there is no fork, there is nothing to register with.
        if let Ok(register) = module.py().import("os")?.getattr("register_at_fork") {
            let hooks = PyDict::new(module.py());
            let before = wrap_pyfunction!(super::pipeline::before_fork, module)?;
            let after = wrap_pyfunction!(super::pipeline::after_fork, module)?;
            let forked = wrap_pyfunction!(super::pipeline::forked, module)?;
            hooks.set_item("before", before)?;
            hooks.set_item("after_in_parent", after)?;
            hooks.set_item("after_in_child", forked)?;
            register.call((), Some(&hooks))?;
        }
        Ok(())
    }
}
