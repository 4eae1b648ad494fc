//! Advantages and value targets: what turns a rollout into something to learn from.

pub mod gae;
mod scan;
pub mod vtrace;

use std::fmt::Debug;

use crate::Real;
use crate::error::RloxError;

/// What may vary in the advantages. A constant is true where the form after stands at its seam.
pub trait TrainingWiring: Debug + Send + Sync + 'static {
    /// P7: the inner loop of GAE.
    const P7: bool;
    /// P9: the inner loop of V-trace.
    const P9: bool;
    /// P14: how one sequence passes through GAE.
    const P14: bool;
    /// P15: how a step-major batch passes through GAE.
    const P15: bool;
    /// P18: how one sequence passes through V-trace.
    const P18: bool;
}

/// `value` lies in [0, 1], as a discount must.
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

/// The error for a result that came out NaN or infinite: names the first input that is to blame.
///
/// Both recursions here multiply and add every input into the result of the first step, and a value
/// that is not finite survives both (0 × NaN and 0 × inf are NaN). So one look at that result
/// tells whether all the inputs were finite, and this search runs only when they were not.
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
