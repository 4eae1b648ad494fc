//! The built-in environments: the one place that lists them.

use super::physics::{Bounds, Physics, components};
use super::spaces::Space;
use super::stepping::{EnvBatch, Stepping};
use crate::error::RloxError;

/// Declares the module of each environment, and what finds it by its id.
macro_rules! builtins {
    ($($module:ident::$Physics:ident),+ $(,)?) => {
        $(
            pub(crate) mod $module;
            pub use $module::$Physics;
        )+

        /// Their ids.
        pub const IDS: &[&str] = &[$($Physics::ID),+];

        /// The environment called `env_id`, to be held in the form `S`.
        ///
        /// # Errors
        /// If none is.
        pub fn find<S: Stepping>(env_id: &str) -> Result<Builtin<S>, RloxError> {
            $(if env_id == $Physics::ID {
                return Ok(Builtin::of::<$Physics>());
            })+
            Err(RloxError::argument(
                "env_id",
                format!("{env_id:?} is not built in; these are: {}", IDS.join(", ")),
            ))
        }
    };
}

builtins! {
    cartpole::CartPole,
    pendulum::Pendulum,
    acrobot::Acrobot,
    mountain_car_continuous::MountainCarContinuous,
    mountain_car::MountainCar,
}

/// Makes environments held in the form `S`.
type Make<S> =
    fn(
        &[u128],
    ) -> Result<Box<dyn EnvBatch<<S as Stepping>::Obs, <S as Stepping>::Info>>, RloxError>;

/// An environment found by its id: what its [`Physics`] says, as values, and what makes some of it.
pub struct Builtin<S: Stepping> {
    /// Its id.
    pub id: &'static str,
    /// Space of its observations.
    pub observation_space: Space,
    /// Space of its actions.
    pub action_space: Space,
    /// Steps after which an episode is truncated.
    pub max_episode_steps: u32,
    /// Where the components of initial states are drawn from.
    pub initial_bounds: &'static [Bounds],
    /// Components of its state.
    pub components: usize,
    /// What one takes in memory, at least, without observations and outcome.
    pub bytes: usize,
    /// Makes environments with these seeds; without a state as yet.
    pub make: Make<S>,
}

impl<S: Stepping> Builtin<S> {
    fn of<P: Physics>() -> Self {
        Self {
            id: P::ID,
            observation_space: P::observation_space(),
            action_space: P::action_space(),
            max_episode_steps: P::MAX_EPISODE_STEPS,
            initial_bounds: P::INITIAL_BOUNDS,
            components: components::<P>(),
            bytes: S::bytes_per_env::<P>(),
            make: S::make::<P>,
        }
    }
}
