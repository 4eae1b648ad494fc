//! Advantages and value targets, computed from the rewards and values of a rollout.

pub mod gae;
mod scan;
pub mod vtrace;

use std::fmt::Debug;

use crate::Real;
use crate::error::RloxError;

/// The seams of the advantages. A constant is true where the optimised form stands at its seam.
pub trait TrainingWiring: Debug + Send + Sync + 'static {
    /// P7: the inner loop of GAE.
    const P7: bool;
    /// P9: the inner loop of V-trace.
    const P9: bool;
    /// P14: how GAE is computed for one sequence.
    const P14: bool;
    /// P15: how GAE is computed for a step-major batch.
    const P15: bool;
    /// P18: how V-trace is computed for one sequence.
    const P18: bool;
}

/// Checks that `value`, a discount factor or GAE's lambda, lies in [0, 1].
fn check_unit_interval(argument: &'static str, value: f64) -> Result<(), RloxError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(RloxError::argument(
            argument,
            format!("is {value}, expected a number in [0, 1]"),
        ))
    }
}

/// The error for a result that is NaN or infinite. It names the first input that is not finite.
///
/// GAE and V-trace multiply and add every input into the result of the first step. An input that is not
/// finite makes that result not finite either, since 0 × NaN and 0 × inf are NaN. So the callers look at
/// the first result only, and call this function, which searches all inputs, if it is not finite.
#[cold]
fn not_finite<T: Real>(inputs: &[(&'static str, &[T])]) -> RloxError {
    for (argument, values) in inputs {
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return RloxError::argument(
                argument,
                format!(
                    "is {} at index {index}, expected finite numbers",
                    values[index]
                ),
            );
        }
    }
    RloxError::argument(
        inputs[0].0,
        "is finite, but the result overflows; scale the inputs down",
    )
}
