//! The one error type of the core; the binding turns it into the Python exception a user expects.

/// What went wrong, in terms of the argument that caused it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RloxError {
    /// An argument's value is outside what the function is defined for.
    #[error("{argument}: {problem}")]
    InvalidArgument {
        /// Name of the argument as the public API spells it.
        argument: &'static str,
        /// The value found and what would do.
        problem: String,
    },
    /// The object is not in a state where the call makes sense (an empty buffer, a closed collector).
    #[error("{0}")]
    InvalidState(String),
    /// There is no memory for what a call needs.
    #[error("no memory for {bytes} bytes")]
    NoMemory {
        /// How much was asked for at once.
        bytes: usize,
    },
}

impl RloxError {
    /// An [`RloxError::InvalidArgument`] for `argument`.
    pub fn argument(argument: &'static str, problem: impl Into<String>) -> Self {
        Self::InvalidArgument {
            argument,
            problem: problem.into(),
        }
    }
}

/// `Ok` when `found == expected`, else an error that names the argument and both lengths.
pub fn check_len(argument: &'static str, found: usize, expected: usize) -> Result<(), RloxError> {
    if found == expected {
        Ok(())
    } else {
        Err(RloxError::argument(
            argument,
            format!("has length {found}, expected {expected}"),
        ))
    }
}
