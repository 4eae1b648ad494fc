//! The data plane for Python: `rlox._core`, the extension that ships. Functions here convert arguments,
//! call the core, and convert results.
//!
//! The crate `rlox-binding` compiles the same source a second time as a library, for the laboratory's
//! extension; that one has no module for Python. The extension that ships is not made from the library:
//! for link-time optimisation cargo compiles a library with fewer passes, and the generic kernels came
//! out slower.

mod acting;
mod arrays;
mod buffer;
#[cfg(extension)]
mod build_info;
mod crossing;
mod end_infos;
mod env;
mod errors;
mod fused;
mod lent;
mod llm;
mod lock;
mod names;
mod nn;
mod numbers;
mod pipeline;
mod recycled_steps;
mod sac;
mod spans;
mod training;

pub use acting::ActionSampler;
pub use buffer::prioritized::PrioritizedReplayBuffer;
pub use buffer::replay::ReplayBuffer;
pub use crossing::{count_crossings, roundtrip, take_crossings};
pub use env::{VecEnv, builtin_envs};
pub use fused::collect_rollout;
pub use llm::{compute_group_advantages, compute_token_kl};
pub use nn::ppo_update;
pub use pipeline::{AsyncCollector, collect_python_rollout};
pub use sac::{SacUpdate, has_amx, has_bfloat16};
pub use spans::{record_spans, take_spans};
pub use training::{compute_gae, compute_gae_batched, compute_vtrace};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

// `gil_used` asks a free-threaded Python to switch its lock on. A call that holds the GIL relies on it
// that no other thread writes to its arrays meanwhile (`arrays`).
#[cfg(extension)]
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::build_info::{build_info, instructions};
    #[pymodule_export]
    use super::{
        ActionSampler, AsyncCollector, PrioritizedReplayBuffer, ReplayBuffer, SacUpdate, VecEnv,
        builtin_envs, collect_python_rollout, collect_rollout, compute_gae, compute_gae_batched,
        compute_group_advantages, compute_token_kl, compute_vtrace, count_crossings, has_amx,
        has_bfloat16, ppo_update, record_spans, roundtrip, take_crossings, take_spans,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::init(module)
    }
}

/// What the laboratory's pairs of optimisations in the binding need: the two forms of each, and what
/// surrounds them.
pub mod seams {
    pub use crate::arrays::{
        Argument, BORROWS, Borrows, FULL, Looks, ResultArrays, Unguarded, reading,
    };
    pub use crate::buffer::gil::{Gil, Held, Released};
    pub use crate::buffer::sampling::{
        ByBatch, IntoArrays, SampleMemory, Sampling, Source, sample_under,
    };
    pub use crate::buffer::{PushArguments, push, push_batch};
    pub use crate::crossing::Site;
    pub use crate::errors::{reserved, to_py};
    pub use crate::lock::Lock;
    pub use crate::numbers::List;
    pub use crate::training::gae_in;
}

/// What an extension does at import: checks that there is a GIL, makes what is made once, and registers
/// hooks.
///
/// The hook for exit ends the collectors' threads, which cannot call Python after the interpreter has
/// ended. The hooks for a fork wait for short work of other threads before it, and mark afterwards in
/// the child what is not there.
///
/// # Errors
/// ImportError without a GIL; MemoryError.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    require_the_lock(module.py())?;
    arrays::prepare(module.py())?;
    // PyO3 makes some objects at their first use. These two calls make those for extracting a NumPy
    // bool and for an error of extraction.
    let wants_a_bool = wrap_pyfunction!(crossing::count_crossings, module)?;
    let numpys = module.py().import("numpy")?.getattr("False_")?;
    wants_a_bool.call1((numpys,))?;
    drop(wants_a_bool.call1((module,)));
    // The type of a class that no module exports is another such object.
    module.py().get_type::<end_infos::EndInfos>();
    let close_all = wrap_pyfunction!(pipeline::close_all, module)?;
    module
        .py()
        .import("atexit")?
        .call_method1("register", (close_all,))?;
    // A platform without fork has no `register_at_fork`.
    if let Ok(register) = module.py().import("os")?.getattr("register_at_fork") {
        let hooks = PyDict::new(module.py());
        let before = wrap_pyfunction!(pipeline::before_fork, module)?;
        let after = wrap_pyfunction!(pipeline::after_fork, module)?;
        let forked = wrap_pyfunction!(pipeline::forked, module)?;
        hooks.set_item("before", before)?;
        hooks.set_item("after_in_parent", after)?;
        hooks.set_item("after_in_child", forked)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

/// Refuses an interpreter whose GIL is off. A free-threaded Python switches it on for this module
/// (`gil_used`), unless the user has forbidden that.
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
