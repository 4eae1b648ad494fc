//! Which implementation stands at each seam. The only file of the core that chooses.
//!
//! Every planned optimisation varies one seam; callers reach the seam through the alias here, so
//! that a twin can be exchanged without touching them.

/// Feature names of the optimisations active in this build.
pub const ACTIVE: &[&str] = &[];
