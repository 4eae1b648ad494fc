//! Per-token and per-group operations of fine-tuning language models.

pub mod ops;
