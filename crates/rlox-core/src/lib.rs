//! The data plane of rlox in pure Rust: environments, buffers, advantages, collectors.
//!
//! Data flows one way: `env` steps environments, `buffer` stores transitions, `training` computes
//! advantages, and `pipeline` collects rollouts with all three. `llm` has the per-token operations of
//! language models, `nn` the small networks of the trainers.
//!
//! The other modules serve these. `simd` compiles a loop for each instruction set, and `math` has the
//! functions that such loops call. `pool` says whether other threads can share work, `sync` is where
//! threads and locks come from, and `memory` allocates without aborting.
//!
//! Each planned optimisation has a seam: a place where one of two forms of the code stands. A
//! [`mod@wiring`] names the form at each seam, and [`switchboard`] makes a wiring from cargo's features.

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

/// Initialises what is initialised once: the choice of the instruction set.
///
/// An extension calls it at import. Otherwise one thread could fork while another one initialises: the
/// lock of the initialisation would stay taken in the child, which would wait for it for ever.
///
/// # Errors
/// If the environment variable `RLOX_INSTRUCTIONS`, which caps the instructions in use, names no
/// instruction set.
pub fn prepare() -> Result<(), RloxError> {
    simd::best()?;
    simd::level();
    Ok(())
}

/// The instruction set that kernels use: `portable`, `avx2` or `avx512`.
pub fn instructions() -> &'static str {
    simd::level().name()
}

pub use error::RloxError;
pub use real::Real;
