//! Small neural networks, the actors and critics of the trainers. The parameters of each lie in one
//! flat vector of float32, so that they can be torch's own memory.
//!
//! - `mlp` is the multilayer perceptron, forward and backward. `packed` is its forward pass for a few
//!   rows at a time, `input_gradient` its gradient by some of the inputs.
//! - `gemm`, `transpose` and `layers` are the kernels, compiled for each instruction set
//!   (`crate::simd`). `bfloat16` has the products of R20, `amx` those of R22.
//! - `adam` is the optimiser. `ppo` is PPO's update of an actor and a critic, `sac` is SAC's of an
//!   actor and two critics.
//! - `acting` draws a policy's actions.
//! - `denormals` makes the processor treat the smallest floats as zero during an update.

mod acting;
pub mod adam;
#[cfg(target_arch = "x86_64")]
mod amx;
mod bfloat16;
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
mod transpose;

pub use acting::{ActionSampler, ActionsOut};
pub(crate) use acting::{check_choices, check_log_std};
pub use bfloat16::{Precision, has_amx, has_bfloat16};
pub use denormals::FlushDenormals;
pub use input_gradient::InputGradient;
pub use mlp::{Activation, Activations, Mlp};
pub use packed::{Hidden, PackedMlp};
