//! tanh, exp and ln, a vector at a time; each follows the bounds that its tests hold.
//!
//! Here in f32, in [`double`] the exponential in f64. The coefficients are minimax fits of the
//! relative error (Lawson's iteration), rounded to f32.

pub(crate) mod double;
#[cfg(test)]
mod tests;

use num_traits::Float;

use crate::simd::{Instructions, kernel};

kernel! {
    /// e to the power of each element, in place: within 2 units in the last place; 0 below -87.3,
    /// where the result would be denormal, and infinite above 88.7.
    pub(crate) fn exp(values: &mut [f32]) = exp_body;
}

kernel! {
    /// Natural logarithm of each element, in place: within 2 units in the last place of the result
    /// or of one, for positive, normal, finite elements; other elements are not meant.
    pub(crate) fn ln(values: &mut [f32]) = ln_body;
}

#[inline(always)]
fn exp_body<I: Instructions>(values: &mut [f32]) {
    for value in values {
        *value = exp_one::<I>(*value);
    }
}

#[inline(always)]
fn ln_body<I: Instructions>(values: &mut [f32]) {
    for value in values {
        *value = ln_one::<I>(*value);
    }
}

/// tanh within 6 units in the last place, and never beyond ±1: x P(x²) / Q(x²), and from 9.02 on the
/// value there, which rounds to 1.
#[inline(always)]
pub(crate) fn tanh_one<I: Instructions>(x: f32) -> f32 {
    let x = x.clamp(-9.02, 9.02);
    let t = x * x;
    let p = horner::<I, _, 5>(
        t,
        [
            1.331_909_2e-8,
            2.058_349_9e-5,
            0.003_494_035_6,
            0.133_797_18,
            1.0,
        ],
    );
    let q = horner::<I, _, 5>(
        t,
        [
            7.762_028_5e-7,
            3.283_094_6e-4,
            0.025_871_078,
            0.467_130_33,
            1.0,
        ],
    );
    (x * p * reciprocal::<I>(q)).clamp(-1.0, 1.0)
}

/// 1 / x for x in [1, 1e6], within 2 units in the last place.
///
/// Where FMA is one instruction, three steps of Newton's iteration cost less than half of a
/// division. The first guess comes from the exponent bits, and is within 12 %.
#[inline(always)]
fn reciprocal<I: Instructions>(x: f32) -> f32 {
    if !I::FMA {
        return 1.0 / x;
    }
    let mut y = f32::from_bits(0x7ef3_11c7_u32.wrapping_sub(x.to_bits()));
    for _ in 0..3 {
        let error = I::mul_add(-x, y, 1.0);
        y = I::mul_add(y, error, y);
    }
    y
}

/// 2^n e^r with n whole and |r| ≤ ln 2 / 2.
#[inline(always)]
pub(crate) fn exp_one<I: Instructions>(x: f32) -> f32 {
    let (n, r) = reduced::<I>(x.clamp(-88.0, 89.0));
    let e_r = 1.0 + I::mul_add(r * r, exp_tail::<I>(r), r);
    // Two factors, since 2^128 is not a float, although 2^128 e^r may be one.
    let half = n >> 1;
    let y = e_r * power(half) * power(n.wrapping_sub(half));
    if x < -87.3 { 0.0 } else { y }
}

/// `exp(x) - 1 - x` within 1e-6 of itself, for |x| ≤ 87: without cancellation where x is small, for
/// then n is 0, and all but the last product vanishes.
#[inline(always)]
pub(crate) fn exp_rest_one<I: Instructions>(x: f32) -> f32 {
    let (n, r) = reduced::<I>(x);
    let scale = power(n);
    let linear = I::mul_add(scale, r, (scale - 1.0) - x);
    I::mul_add(scale, r * r * exp_tail::<I>(r), linear)
}

/// n and r of x = n ln 2 + r.
#[inline(always)]
fn reduced<I: Instructions>(x: f32) -> (i32, f32) {
    /// Added to a small float, it leaves the nearest whole number in the last bits.
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23
    // ln 2 as a number with 9 trailing zero bits, and the rest.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = I::mul_add(n, -LN_2_HIGH, x);
    let r = I::mul_add(n, -LN_2_LOW, r);
    let bits = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    (bits, r)
}

/// (e^r - 1 - r) / r².
#[inline(always)]
fn exp_tail<I: Instructions>(r: f32) -> f32 {
    horner::<I, _, 5>(
        r,
        [
            0.001_381_446_7,
            0.008_368_781,
            0.041_668_393,
            0.166_665_2,
            0.499_999_94,
        ],
    )
}

/// 2^n for n in [-126, 127].
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// k ln 2 + ln m with k whole and m in [sqrt 1/2, sqrt 2).
#[inline(always)]
pub(crate) fn ln_one<I: Instructions>(x: f32) -> f32 {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits().wrapping_sub(SQRT_HALF);
    let k = (bits as i32 >> 23) as f32;
    let m = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF);
    let f = m - 1.0;
    let q = horner::<I, _, 7>(
        f,
        [
            0.087_004_35,
            -0.142_674_86,
            0.149_147_69,
            -0.165_775_85,
            0.199_630_63,
            -0.250_013_38,
            0.333_339_1,
        ],
    );
    let square = f * f;
    let tail = I::mul_add(f * square, q, -0.5 * square);
    I::mul_add(k, 0.693_359_4, I::mul_add(k, -2.121_944_4e-4, tail) + f)
}

/// The polynomial with these coefficients, the highest power first.
#[inline(always)]
fn horner<I: Instructions, T: Float, const N: usize>(x: T, coefficients: [T; N]) -> T {
    let mut sum = coefficients[0];
    let mut i = 1;
    while i < N {
        sum = I::mul_add(sum, x, coefficients[i]);
        i += 1;
    }
    sum
}
