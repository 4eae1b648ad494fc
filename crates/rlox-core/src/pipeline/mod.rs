//! Collecting rollouts: a policy acts in environments, and what happened is kept with advantages. The
//! caller can do it, or a thread in the background while the caller learns.

pub mod collector;
pub mod current_obs;
pub mod fused;
pub mod rollout;
pub mod rollout_gae;

use crate::env::EnvWiring;
use crate::env::vec_env::VecEnv;
use crate::training::TrainingWiring;

/// What may vary in the collection of rollouts, its environments and its advantages. A constant is
/// true where the form after stands at its seam.
pub trait PipelineWiring: EnvWiring + TrainingWiring {
    /// P1: advantages of a step-major rollout.
    const P1: bool;
    /// P13: the observations to act on.
    const P13: bool;
}

/// The environments of a wiring.
pub type EnvOf<W> = VecEnv<<W as EnvWiring>::Stepping>;

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
