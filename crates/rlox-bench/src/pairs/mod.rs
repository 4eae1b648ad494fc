//! One file per pair, and the list of them.
//!
//! A pair says of both its arms what stands at every seam that they come by, so that it is the same
//! in every build: what ships, but for its own seam. Where that is dead code under what ships, its file
//! says so, and its arms start from the wiring of all baselines.

mod p01_rollout_gae;
mod p02_obs_store;
mod p03_intake;
mod p04_batches;
mod p05_min_priority;
mod p07_gae;
mod p08_schedule;
mod p09_vtrace;
mod p10_info;
mod p12_push;
mod p13_current_obs;
mod p14_gae_blocks;
mod p15_gae_step_major;
mod p16_token_kl;
mod p17_group_advantages;
mod p18_vtrace_blocks;
mod p19_stepping;
mod p20_columns;
mod p21_push_batch;
mod p22_descent;
mod p24_observations;
mod p26_pages;
mod p27_next_aside;

mod buffers;
mod envs;
mod sequences;
mod vtrace;

pub use buffers::{PUSH_SIZES, SAMPLE_SIZES, rows_for};
pub use p04_batches::AfterP4;

use crate::pair::Pair;

/// Every pair whose twins live in the core. P6 is a pair of cargo profiles; the twins of P11, P23, P25,
/// P28 and P29 need an interpreter and live in the binding.
pub const PAIRS: &[&dyn Pair] = &[
    &p01_rollout_gae::RolloutGae,
    &p02_obs_store::ObsStores,
    &p03_intake::Intake,
    &p04_batches::BatchMemory,
    &p05_min_priority::MinPriorities,
    &p07_gae::Gae,
    &p08_schedule::Schedules,
    &p09_vtrace::Vtrace,
    &p10_info::Infos,
    &p12_push::Push,
    &p13_current_obs::CurrentObs,
    &p14_gae_blocks::GaeBlocks,
    &p15_gae_step_major::GaeStepMajor,
    &p16_token_kl::TokenKl,
    &p17_group_advantages::GroupAdvantages,
    &p18_vtrace_blocks::VtraceBlocks,
    &p19_stepping::SteppingPair,
    &p20_columns::IntoColumns,
    &p21_push_batch::PushBatch,
    &p22_descent::Descent,
    &p24_observations::ObservationsPair,
    &p26_pages::Pages,
    &p27_next_aside::NextAside,
];

#[cfg(test)]
mod tests;
