//! The built-in environments, by their Gymnasium id.

mod cartpole;
mod pendulum;

pub use cartpole::CartPole;
pub use pendulum::Pendulum;

use super::RLEnv;
use super::info::StepInfo;
use crate::error::RloxError;

/// Makes one environment.
pub type Make<I> = fn() -> Box<dyn RLEnv<I>>;

/// Ids of the built-in environments.
pub const IDS: &[&str] = &[CartPole::ID, Pendulum::ID];

/// What makes the environment called `env_id`, and its id.
pub fn find<I: StepInfo>(env_id: &str) -> Result<(&'static str, Make<I>), RloxError> {
    match env_id {
        CartPole::ID => Ok((CartPole::ID, || Box::new(CartPole::default()))),
        Pendulum::ID => Ok((Pendulum::ID, || Box::new(Pendulum::default()))),
        _ => Err(RloxError::argument(
            "env_id",
            format!("{env_id:?} is not built in; these are: {}", IDS.join(", ")),
        )),
    }
}
