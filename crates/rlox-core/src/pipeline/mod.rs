//! Collecting rollouts: a policy acts in environments, and the transitions are stored with their
//! advantages. The caller's thread can do it, or a thread in the background while the caller learns.

pub mod collector;
pub mod current_obs;
pub mod fused;
pub mod rollout;
pub mod rollout_gae;

use crate::env::EnvWiring;
use crate::env::vec_env::VecEnv;
use crate::training::TrainingWiring;

/// The seams of the collection of rollouts, with those of its environments and advantages. A constant is
/// true where the optimised form stands at its seam.
pub trait PipelineWiring: EnvWiring + TrainingWiring {
    /// P1: how the advantages of a step-major rollout are computed.
    const P1: bool;
    /// P13: how the observations that the policy acts on are gathered.
    const P13: bool;
}

/// The environments of a wiring.
pub type EnvOf<W> = VecEnv<<W as EnvWiring>::Stepping>;

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
