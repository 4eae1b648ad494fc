//! The floating-point types that the training math is written for.

use std::fmt::{Debug, Display};

use num_traits::Float;

/// `f32` or `f64`: what a kernel needs to be written once for both.
pub trait Real: Float + Debug + Display + Into<f64> + Send + Sync + 'static {
    /// Rounded to this type.
    fn from_f64(value: f64) -> Self;
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}
