//! The data plane of rlox in pure Rust: environments, buffers, advantages, collectors.
//!
//! Data flows one way: `env` → `buffer` → `training` (advantages), gathered by `pipeline`; `llm`
//! holds the per-token operations, `nn` the small networks of the trainers, `simd` what compiles a
//! loop for every instruction set, `math` the functions that such loops take, `pool` the threads that
//! share work, `sync` where threads come from, `memory` asks for memory. Each planned optimisation has
//! a seam here; a [`wiring`] names the form that stands at each, and [`switchboard`] makes one from the
//! features of cargo.

pub mod buffer;
pub mod env;
pub mod error;
pub mod llm;
mod math;
pub mod memory;
pub mod nn;
pub mod pipeline;
pub mod pool;
pub mod real;
mod simd;
pub mod switchboard;
mod sync;
pub mod training;
pub mod wiring;

/// Finds out what is found out but once. A fork by one thread while another does it would leave the
/// child waiting for it for ever.
///
/// # Errors
/// When `RLOX_INSTRUCTIONS`, which caps the instructions in use, is no level of them.
pub fn prepare() -> Result<(), RloxError> {
    simd::best()?;
    simd::level();
    Ok(())
}

/// The instructions that kernels run with: `portable`, `avx2` or `avx512`.
pub fn instructions() -> &'static str {
    simd::level().name()
}

pub use error::RloxError;
pub use real::Real;
