//! The built-in environments, and many copies of one of them stepped together.
//!
//! [`physics`] says what an environment is, and [`builtins`] lists the environments, one file each.
//! [`vec_env`] steps many copies of one environment together, with same-step autoreset. [`seeding`] makes
//! random numbers from a seed as NumPy does, so that episodes start as Gymnasium's do.
//!
//! How the copies are stored and stepped is P19's seam, [`stepping`]. [`lanes`] is the optimised form,
//! which ships: eight copies at a time. [`members`] is the baseline, which steps copy after copy, each an
//! environment of [`scalar`]. [`obs_store`] and [`info`] are the seams of P2 and P10, which vary parts of
//! that baseline.

pub mod builtins;
pub mod info;
pub mod lanes;
pub mod members;
pub mod obs_store;
pub mod physics;
pub mod scalar;
pub mod seeding;
pub mod spaces;
pub mod stepping;
#[cfg(test)]
mod tests;
mod trig;
pub mod vec_env;

/// The seams of the environments.
pub trait EnvWiring: std::fmt::Debug + Send + Sync + 'static {
    /// P19: how many copies of an environment are stored and stepped. The baseline's type also names the
    /// forms of P2 and P10.
    type Stepping: stepping::Stepping;
}
