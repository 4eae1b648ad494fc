//! Spaces of observations and actions, and the check that a batch of actions lies within one.

use crate::error::{RloxError, check_len};

/// The set that observations or actions come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Space {
    /// The integers `0..n`.
    Discrete(usize),
    /// A box of reals; bounds per component, infinite where there is none.
    Box {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
    },
}

impl Space {
    /// A box that is symmetric around zero.
    pub fn symmetric(high: Vec<f32>) -> Self {
        Self::Box {
            low: high.iter().map(|bound| -bound).collect(),
            high,
        }
    }

    /// Numbers an element takes.
    pub fn dim(&self) -> usize {
        match self {
            Self::Discrete(_) => 1,
            Self::Box { low, .. } => low.len(),
        }
    }
}

/// The action of one environment, valid for its action space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Index into a discrete space.
    Discrete(usize),
    /// Components of a continuous one.
    Continuous(&'a [f32]),
}

/// The actions of all environments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Actions<'a> {
    /// `[n_envs]` indices.
    Discrete(&'a [i64]),
    /// `[n_envs * act_dim]` components, environment by environment.
    Continuous(&'a [f32]),
}

impl<'a> Actions<'a> {
    /// Checks the kind, the number and every value, before any environment moves.
    ///
    /// A continuous action beyond the bounds is valid, as in Gymnasium: what it does is the environment's.
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

    /// Those of a discrete space.
    fn indices(self) -> Result<&'a [i64], RloxError> {
        match self {
            Self::Discrete(actions) => Ok(actions),
            Self::Continuous(_) => Err(RloxError::argument(
                "actions",
                "are floats, expected integers for a discrete action space",
            )),
        }
    }

    /// Those of a continuous space.
    fn components(self) -> Result<&'a [f32], RloxError> {
        match self {
            Self::Continuous(actions) => Ok(actions),
            Self::Discrete(_) => Err(RloxError::argument(
                "actions",
                "are integers, expected float32 for a continuous action space",
            )),
        }
    }

    /// Numbers in the action of one of `n_envs` environments; the batch has been checked.
    pub(crate) fn per_env(&self, n_envs: usize) -> usize {
        match self {
            Self::Discrete(_) => 1,
            Self::Continuous(actions) => actions.len() / n_envs,
        }
    }

    /// The action of environment `i`; the batch has been checked.
    #[inline]
    pub(crate) fn of(&self, i: usize, dim: usize) -> Action<'a> {
        match self {
            Self::Discrete(actions) => Action::Discrete(actions[i] as usize),
            Self::Continuous(actions) => Action::Continuous(&actions[i * dim..(i + 1) * dim]),
        }
    }
}

/// The action of one environment, as [`super::physics::Physics::step`] takes it.
pub trait LaneAction: Copy + Default + Send {
    /// The actions of a batch, one an environment.
    ///
    /// # Errors
    /// If they are of another kind.
    fn all(actions: Actions<'_>) -> Result<&[Self], RloxError>;

    /// The action of one environment, if it is of this kind.
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
