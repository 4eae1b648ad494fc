//! Small neural networks: what a policy or a critic is, on a flat vector of float32 parameters.
//!
//! `gemm` and `layers` are kernels, compiled for each instruction set (`crate::simd`), `mlp` is the
//! network, `packed` the same laid out for a few rows at a time, `input_gradient` its gradient by
//! some of its inputs, `adam` the networks' optimiser, `acting` draws a policy's actions, `ppo` is the
//! update of an actor-critic, `sac` that of an actor and two critics. `denormals` sets how the processor treats the smallest floats meanwhile.

mod acting;
pub mod adam;
mod denormals;
mod gemm;
mod input_gradient;
mod layers;
mod mlp;
mod packed;
pub mod ppo;
pub mod sac;
#[cfg(test)]
mod tests;

pub(crate) use acting::check_log_std;
pub use acting::{ActionSampler, ActionsOut};
pub use denormals::FlushDenormals;
pub use input_gradient::InputGradient;
pub use mlp::{Activation, Activations, Mlp, Packed};
pub use packed::{Hidden, PackedMlp};
