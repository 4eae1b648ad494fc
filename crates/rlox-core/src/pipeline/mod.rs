//! From environments and a policy to rollouts: collection, and its thread in the background.

pub mod collector;
pub mod current_obs;
pub mod fused;
pub mod rollout;
pub mod rollout_gae;
#[cfg(test)]
mod tests;
