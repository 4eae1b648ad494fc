//! P16's seam: how k3 is summed over the tokens of each sequence.
//!
//! `k3_sums(log_probs_policy, log_probs_ref, mask, sums)` writes a sum for each sequence.

pub mod baseline;
pub mod optimized;
