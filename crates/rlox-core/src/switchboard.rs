//! Which implementation stands at each seam. The only file of the core that chooses.
//!
//! Every planned optimisation varies one seam; callers reach the seam through the alias here, so
//! that a twin can be exchanged without touching them.

/// Feature names of the optimisations active in this build.
pub const ACTIVE: &[&str] = &[];

/// P1: advantages of a step-major rollout.
pub use crate::pipeline::rollout_gae::baseline as rollout_gae;
/// P2: where the observations of a step are put.
pub type ObsStore = crate::env::obs_store::PerEnvObs;
/// P4: where the memory of sampled batches comes from.
pub type Batches<O> = crate::buffer::batch::Fresh<O>;
/// P5: how the smallest priority is known.
pub type MinPriority = crate::buffer::priority::Scan;
/// P7: the inner loop of GAE.
pub use crate::training::gae::baseline as gae;
/// P8: when the LLM operations use every core.
pub type LlmOps = crate::llm::ops::Ops<crate::llm::ops::ByRows>;
/// P9: the inner loop of V-trace.
pub use crate::training::vtrace::baseline as vtrace;
/// P10: what a step without anything to report hands over.
pub type StepInfo = crate::env::info::MapInfo;
/// P12: whether an owned or a borrowed transition is the primary form of a push.
pub use crate::buffer::push::baseline as push;
/// P13: the observations to act on.
pub use crate::pipeline::current_obs::baseline as current_obs;

/// The environments, with the choices above.
pub type VecEnv = crate::env::parallel::VecEnv<ObsStore, StepInfo>;
/// The uniform buffer, with the choices above.
pub type ReplayBuffer<O> = crate::buffer::ringbuf::RingBuffer<O, Batches<O>>;
/// The prioritised buffer, with the choices above.
pub type PrioritizedReplayBuffer<O> =
    crate::buffer::priority::PriorityBuffer<O, MinPriority, Batches<O>>;
