//! The built-in environments, by their Gymnasium id.

pub(crate) mod cartpole;
pub(crate) mod pendulum;

pub use cartpole::CartPole;
pub use pendulum::Pendulum;

use super::RLEnv;
use super::info::StepInfo;
use crate::error::RloxError;

/// Ids of the built-in environments.
pub const IDS: &[&str] = &[CartPole::ID, Pendulum::ID];

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`CartPole`].
    CartPole,
    /// [`Pendulum`].
    Pendulum,
}

impl Kind {
    /// The environment called `env_id`.
    ///
    /// # Errors
    /// If none is.
    pub fn of(env_id: &str) -> Result<Self, RloxError> {
        match env_id {
            CartPole::ID => Ok(Self::CartPole),
            Pendulum::ID => Ok(Self::Pendulum),
            _ => Err(RloxError::argument(
                "env_id",
                format!("{env_id:?} is not built in; these are: {}", IDS.join(", ")),
            )),
        }
    }

    /// Its id.
    pub fn id(self) -> &'static str {
        match self {
            Self::CartPole => CartPole::ID,
            Self::Pendulum => Pendulum::ID,
        }
    }

    /// One of it.
    pub fn make<I: StepInfo>(self) -> Box<dyn RLEnv<I>> {
        match self {
            Self::CartPole => Box::new(CartPole::default()),
            Self::Pendulum => Box::new(Pendulum::default()),
        }
    }
}
