//! `rlox._core`: the whole public surface of the extension, on one screen.

mod arrays;
mod buffer;
mod build_info;
mod crossing;
mod env;
mod errors;
mod fused;
mod llm;
mod nn;
mod numbers;
mod pairs;
mod pipeline;
mod recycled;
mod sac;
mod spans;
mod training;

use pyo3::prelude::*;
use pyo3::types::PyDict;

// Where Python has no lock of its own, it is to bring it back: calls that keep the interpreter rely on
// nobody else writing to arrays meanwhile (`arrays`).
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::buffer::prioritized::PrioritizedReplayBuffer;
    #[pymodule_export]
    use super::buffer::replay::ReplayBuffer;
    #[pymodule_export]
    use super::build_info::build_info;
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

    /// Collectors end before the interpreter does: their threads could not call Python any more. A
    /// process that is forked off has none of our threads.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let close_all = wrap_pyfunction!(super::pipeline::close_all, module)?;
        module
            .py()
            .import("atexit")?
            .call_method1("register", (close_all,))?;
        // Where there is no fork, there is nothing to register with.
        if let Ok(register) = module.py().import("os")?.getattr("register_at_fork") {
            let forked = wrap_pyfunction!(super::pipeline::forked, module)?;
            let hook = PyDict::new(module.py());
            hook.set_item("after_in_child", forked)?;
            register.call((), Some(&hook))?;
        }
        Ok(())
    }
}
