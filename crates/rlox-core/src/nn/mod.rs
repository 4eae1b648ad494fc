//! Small neural networks: what a policy or a critic is, on a flat vector of float32 parameters.

mod mlp;
#[cfg(test)]
mod tests;

pub use mlp::{Activation, Activations, Mlp};
