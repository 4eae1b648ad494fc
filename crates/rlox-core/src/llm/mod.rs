//! Per-token and per-group operations of fine-tuning language models.

pub mod group_advantages;
pub mod ops;
pub mod token_kl;
