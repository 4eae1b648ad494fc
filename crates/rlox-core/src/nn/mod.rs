//! Small neural networks: what a policy or a critic is, on a flat vector of float32 parameters.

mod input_gradient;
mod mlp;
pub mod sac;
#[cfg(test)]
mod tests;

pub use input_gradient::InputGradient;
pub use mlp::{Activation, Activations, Mlp};
