//! Which implementation stands at each seam. The only file of the core that chooses.
//!
//! Every planned optimisation varies one seam; callers reach the seam through the alias here, so
//! that a twin can be exchanged without touching them.

/// Feature names of the optimisations active in this build.
pub const ACTIVE: &[&str] = &[];

/// P7: the inner loop of GAE.
pub use crate::training::gae::baseline as gae;
/// P9: the inner loop of V-trace.
pub use crate::training::vtrace::baseline as vtrace;
/// P8: when the LLM operations use every core.
pub type LlmOps = crate::llm::ops::Ops<crate::llm::ops::ByRows>;
