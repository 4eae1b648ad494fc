//! The list of the built-in environments. Nothing else names them all.

use super::physics::{Bounds, Physics, components};
use super::spaces::Space;
use super::stepping::{EnvBatch, Stepping};
use crate::error::RloxError;

/// Declares the module of each environment, the list of their ids, and the function that finds one by its
/// id.
macro_rules! builtins {
    ($($module:ident::$Physics:ident),+ $(,)?) => {
        $(
            pub(crate) mod $module;
            pub use $module::$Physics;
        )+

        /// The ids of the built-in environments.
        pub const IDS: &[&str] = &[$($Physics::ID),+];

        /// The environment with the id `env_id`, to be stored and stepped in the form `S`.
        ///
        /// # Errors
        /// If no environment has this id.
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

/// The type of [`Stepping::make`] for one environment.
type Make<S> =
    fn(
        &[u128],
    ) -> Result<Box<dyn EnvBatch<<S as Stepping>::Obs, <S as Stepping>::Info>>, RloxError>;

/// An environment that was found by its id: the constants and functions of its [`Physics`] as values,
/// since the caller does not know its type.
pub struct Builtin<S: Stepping> {
    /// [`Physics::ID`].
    pub id: &'static str,
    /// [`Physics::observation_space`].
    pub observation_space: Space,
    /// [`Physics::action_space`].
    pub action_space: Space,
    /// [`Physics::MAX_EPISODE_STEPS`].
    pub max_episode_steps: u32,
    /// [`Physics::INITIAL_BOUNDS`].
    pub initial_bounds: &'static [Bounds],
    /// The number of components of the state.
    pub components: usize,
    /// [`Stepping::bytes_per_env`].
    pub bytes: usize,
    /// [`Stepping::make`].
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
