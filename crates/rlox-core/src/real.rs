//! The floating-point types that the training math is written for.

use std::fmt::{Debug, Display};

use num_traits::Float;

use crate::math;
use crate::memory::Zero;
use crate::simd::Instructions;

/// `f32` or `f64`: what a kernel needs to be written once for both.
pub trait Real: Float + Zero + Debug + Display + Into<f64> + Send + Sync + 'static {
    /// Up to this magnitude [`Real::exp_rest`] holds.
    const EXP_REST_RANGE: Self;

    /// Rounded to this type.
    fn from_f64(value: f64) -> Self;

    /// e to the power of `self`, as a lane of a vector.
    fn exp_lane<I: Instructions>(self) -> Self;

    /// e to the power of `self` without the first two terms of its series, `exp(x) - 1 - x`, as a
    /// lane of a vector.
    fn exp_rest<I: Instructions>(self) -> Self;
}

impl Real for f32 {
    const EXP_REST_RANGE: Self = 87.0;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn exp_lane<I: Instructions>(self) -> Self {
        math::exp_one::<I>(self)
    }

    #[inline(always)]
    fn exp_rest<I: Instructions>(self) -> Self {
        math::exp_rest_one::<I>(self)
    }
}

impl Real for f64 {
    const EXP_REST_RANGE: Self = 700.0;

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn exp_lane<I: Instructions>(self) -> Self {
        math::double::exp_one::<I>(self)
    }

    #[inline(always)]
    fn exp_rest<I: Instructions>(self) -> Self {
        math::double::exp_rest_one::<I>(self)
    }
}
