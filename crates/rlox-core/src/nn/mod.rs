//! Small neural networks: what a policy or a critic is, on a flat vector of float32 parameters.
//!
//! `simd` chooses the instruction set, `gemm`, `math` and `layers` are what is compiled for each,
//! `mlp` is the network, `adam` its optimiser, `ppo` the update of an actor-critic.

pub mod adam;
mod gemm;
mod input_gradient;
mod layers;
pub mod math;
mod mlp;
mod packed;
pub mod ppo;
pub mod sac;
mod simd;
#[cfg(test)]
mod tests;

pub use input_gradient::InputGradient;
pub use mlp::{Activation, Activations, Mlp, Packed};
pub use packed::{Hidden, PackedMlp};
pub use simd::FlushDenormals;
