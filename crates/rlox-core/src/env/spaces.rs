//! Spaces of observations and actions, and the check that a batch of actions lies within one.

use crate::error::{RloxError, check_len};

/// The set of valid observations or actions of an environment, as in Gymnasium.
#[derive(Debug, Clone, PartialEq)]
pub enum Space {
    /// The integers `0..n`.
    Discrete(usize),
    /// Vectors of real numbers within bounds. The bound of a component may be infinite.
    Box {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
    },
}

impl Space {
    /// The box with the bounds -`high` and `high`.
    pub fn symmetric(high: Vec<f32>) -> Self {
        Self::Box {
            low: high.iter().map(|bound| -bound).collect(),
            high,
        }
    }

    /// How many numbers an element of the space has.
    pub fn dim(&self) -> usize {
        match self {
            Self::Discrete(_) => 1,
            Self::Box { low, .. } => low.len(),
        }
    }
}

/// The action of one environment. It is valid for the environment's action space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// The index of a discrete action.
    Discrete(usize),
    /// The components of a continuous action.
    Continuous(&'a [f32]),
}

/// The actions of many environments, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Actions<'a> {
    /// Indices, `[n_envs]`.
    Discrete(&'a [i64]),
    /// Components, `[n_envs * act_dim]`, environment after environment.
    Continuous(&'a [f32]),
}

impl<'a> Actions<'a> {
    /// Checks that these are valid actions of `n_envs` environments. It is called before a step, so that
    /// with a bad action no environment moves.
    ///
    /// A continuous action beyond the bounds is valid, as in Gymnasium: each environment defines what
    /// such an action does.
    ///
    /// # Errors
    /// If the actions are of the other kind or of another number, an index is outside of the space, or a
    /// component is not finite.
    pub fn check(&self, space: &Space, n_envs: usize) -> Result<(), RloxError> {
        match space {
            Space::Discrete(n) => {
                let actions = self.indices()?;
                check_len("actions", actions.len(), n_envs)?;
                match actions.iter().position(|&a| a < 0 || a >= *n as i64) {
                    None => Ok(()),
                    Some(i) => Err(RloxError::argument(
                        "actions",
                        format!("actions[{i}] is {}, expected 0 to {}", actions[i], n - 1),
                    )),
                }
            }
            Space::Box { low, .. } => {
                let actions = self.components()?;
                check_len("actions", actions.len(), n_envs * low.len())?;
                match actions.iter().position(|a| !a.is_finite()) {
                    None => Ok(()),
                    Some(i) => Err(RloxError::argument(
                        "actions",
                        format!(
                            "the action of environment {} is {}, expected finite numbers",
                            i / low.len(),
                            actions[i]
                        ),
                    )),
                }
            }
        }
    }

    /// The indices; an error if the actions are continuous.
    fn indices(self) -> Result<&'a [i64], RloxError> {
        match self {
            Self::Discrete(actions) => Ok(actions),
            Self::Continuous(_) => Err(RloxError::argument(
                "actions",
                "are floats, expected integers for a discrete action space",
            )),
        }
    }

    /// The components; an error if the actions are discrete.
    fn components(self) -> Result<&'a [f32], RloxError> {
        match self {
            Self::Continuous(actions) => Ok(actions),
            Self::Discrete(_) => Err(RloxError::argument(
                "actions",
                "are integers, expected float32 for a continuous action space",
            )),
        }
    }

    /// How many numbers the action of one of `n_envs` environments has. [`Self::check`] has been called.
    pub(crate) fn per_env(&self, n_envs: usize) -> usize {
        match self {
            Self::Discrete(_) => 1,
            Self::Continuous(actions) => actions.len() / n_envs,
        }
    }

    /// The action of environment `i`, which has `dim` numbers. [`Self::check`] has been called.
    #[inline]
    pub(crate) fn of(&self, i: usize, dim: usize) -> Action<'a> {
        match self {
            Self::Discrete(actions) => Action::Discrete(actions[i] as usize),
            Self::Continuous(actions) => Action::Continuous(&actions[i * dim..(i + 1) * dim]),
        }
    }
}

/// The type of one lane's action in [`super::physics::Physics::step`].
pub trait LaneAction: Copy + Default + Send {
    /// The actions of many environments as a slice with one element for each.
    ///
    /// # Errors
    /// If they are of the other kind: discrete or continuous.
    fn all(actions: Actions<'_>) -> Result<&[Self], RloxError>;

    /// The action of one environment as this type; None if it is of the other kind.
    fn one(action: Action<'_>) -> Option<Self>;
}

impl LaneAction for i64 {
    #[inline]
    fn all(actions: Actions<'_>) -> Result<&[Self], RloxError> {
        actions.indices()
    }

    fn one(action: Action<'_>) -> Option<Self> {
        match action {
            Action::Discrete(index) => Some(index as i64),
            Action::Continuous(_) => None,
        }
    }
}

impl<const N: usize> LaneAction for [f32; N]
where
    Self: Default,
{
    #[inline]
    fn all(actions: Actions<'_>) -> Result<&[Self], RloxError> {
        Ok(actions.components()?.as_chunks().0)
    }

    fn one(action: Action<'_>) -> Option<Self> {
        match action {
            Action::Continuous(components) => components.first_chunk().copied(),
            Action::Discrete(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(actions: Actions<'_>, space: &Space) -> String {
        actions
            .check(space, 2)
            .map_or_else(|error| error.to_string(), |()| "fine".into())
    }

    #[test]
    fn bad_actions_are_named_with_the_value_found() {
        let (coin, torque) = (Space::Discrete(2), Space::symmetric(vec![2.0]));
        assert_eq!(problem(Actions::Discrete(&[0, 1]), &coin), "fine");
        assert_eq!(
            problem(Actions::Discrete(&[0, 2]), &coin),
            "actions: actions[1] is 2, expected 0 to 1"
        );
        assert_eq!(
            problem(Actions::Discrete(&[-1, 0]), &coin),
            "actions: actions[0] is -1, expected 0 to 1"
        );
        assert!(problem(Actions::Discrete(&[0]), &coin).contains("length 1, expected 2"));
        assert!(problem(Actions::Discrete(&[0, 0]), &torque).contains("expected float32"));
        assert!(problem(Actions::Continuous(&[0.0, 0.0]), &coin).contains("expected integers"));
        assert!(
            problem(Actions::Continuous(&[0.0, f32::NAN]), &torque)
                .contains("environment 1 is NaN")
        );
        assert!(problem(Actions::Continuous(&[f32::INFINITY, 0.0]), &torque).contains("inf"));
        assert_eq!(problem(Actions::Continuous(&[-9.0, 9.0]), &torque), "fine");
    }
}
