//! Per-token and per-group operations of fine-tuning language models.

pub mod group_advantages;
pub mod ops;
pub mod token_kl;

use std::fmt::Debug;

/// What may vary in these operations. A constant is true where the form after stands at its seam.
pub trait LlmWiring: Debug + Send + Sync + 'static {
    /// P8: when they use every core.
    type Schedule: ops::Schedule;
    /// P16: how the tokens of a batch become the KL of its sequences.
    const P16: bool;
    /// P17: how the rewards of a batch are normalised by groups.
    const P17: bool;
}
