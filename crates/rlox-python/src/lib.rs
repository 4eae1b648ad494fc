//! `rlox._core`, the extension that ships: its whole public surface, on one screen.

mod build_info;

use pyo3::prelude::*;

// A Python that can do without its lock is asked to take it here, since a call that keeps the
// interpreter relies on nobody else writing to its arrays meanwhile (`arrays` of the binding).
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::build_info::{build_info, instructions};
    #[pymodule_export]
    use rlox_binding::{
        ActionSampler, AsyncCollector, PrioritizedReplayBuffer, ReplayBuffer, SacUpdate, VecEnv,
        builtin_envs, collect_rollout, compute_gae, compute_gae_batched, compute_group_advantages,
        compute_token_kl, compute_vtrace, count_crossings, ppo_update, record_spans, roundtrip,
        take_crossings, take_spans,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        rlox_binding::init(module)
    }
}
