//! Operations of fine-tuning language models by reinforcement learning: the KL divergence per token and
//! GRPO's advantages per group.

pub mod group_advantages;
pub mod ops;
pub mod token_kl;

use std::fmt::Debug;

/// The seams of these operations. A constant is true where the optimised form stands at its seam.
pub trait LlmWiring: Debug + Send + Sync + 'static {
    /// P8: when an operation uses every core.
    type Schedule: ops::Schedule;
    /// P16: how the KL of each sequence is summed over its tokens.
    const P16: bool;
    /// P17: how the rewards of each group are normalised.
    const P17: bool;
}
