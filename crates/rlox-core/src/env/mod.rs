//! Environments: the built-in ones, and many of them stepped together.
//!
//! [`physics`] says what an environment is, [`builtins`] lists those there are, a file each, and
//! [`vec_env`] is the engine: a batch of one of them with same-step autoreset. [`seeding`] gives a
//! seed the meaning that it has in Gymnasium.
//!
//! How the engine holds the environments is the seam of P19, [`stepping`]: [`lanes`] is what ships,
//! [`members`] the form before, made of environments that [`scalar`] states one by one. [`obs_store`]
//! and [`info`] are the seams of P2 and P10, within the form before.

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

/// What may vary in how environments are stepped.
pub trait EnvWiring: std::fmt::Debug + Send + Sync + 'static {
    /// P19: how environments are held, and what steps them; P2 and P10 vary the form before.
    type Stepping: stepping::Stepping;
}
