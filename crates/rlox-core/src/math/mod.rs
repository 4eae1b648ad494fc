//! tanh, exp and ln in float32, and in [`double`] exp in float64, in a form that the compiler can
//! vectorise: polynomials without branches or calls, where libm's functions would be called for each
//! element.
//!
//! The coefficients are minimax fits of the relative error, found by Lawson's iteration or by Remez's, and
//! rounded. The tests check the error bounds that are stated here. A unit in the last place is written ulp.

pub(crate) mod double;
#[cfg(test)]
mod tests;

use num_traits::Float;

use crate::simd::{Instructions, kernel};

kernel! {
    /// e^x of each element, in place, within 2 ulp. The result is 0 below -87.3, where it would be
    /// denormal, and infinity above 88.7.
    pub(crate) fn exp(values: &mut [f32]) = exp_body;
}

kernel! {
    /// The natural logarithm of each element, in place, within 2 ulp of the result or of 1, whichever
    /// is larger. The elements must be positive, normal and finite; the result of others is
    /// unspecified.
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

/// tanh within 6 ulp, and never beyond ±1: the rational function x P(x²) / Q(x²). Beyond ±9.02, x is
/// clamped, since tanh rounds to ±1 there.
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

/// 1 / x for x in [1, 1e6], within 2 ulp.
///
/// In vectors of sixteen, three steps of Newton's iteration take less time than a division. In shorter
/// ones a division takes less, since the processor does it beside multiply-adds. The first guess
/// subtracts the bits of x, exponent and all, from a constant, and is within 12 %.
#[inline(always)]
fn reciprocal<I: Instructions>(x: f32) -> f32 {
    if !I::WIDE {
        return 1.0 / x;
    }
    let mut y = f32::from_bits(0x7ef3_11c7_u32.wrapping_sub(x.to_bits()));
    for _ in 0..3 {
        let error = I::mul_add(-x, y, 1.0);
        y = I::mul_add(y, error, y);
    }
    y
}

/// e^x = 2^n e^r for x = n ln 2 + r, with n a whole number and |r| ≤ ln 2 / 2. See [`exp`] for its
/// bounds.
#[inline(always)]
pub(crate) fn exp_one<I: Instructions>(x: f32) -> f32 {
    let (n, r) = reduced::<I>(x.clamp(-88.0, 89.0));
    let e_r = 1.0 + I::mul_add(r * r, exp_tail::<I>(r), r);
    // 2^n in two factors: 2^128 is not a float32, although 2^128 e^r may be one.
    let half = n >> 1;
    let y = e_r * power(half) * power(n.wrapping_sub(half));
    if x < -87.3 { 0.0 } else { y }
}

/// `exp(x) - 1 - x` with a relative error of at most 1e-6, for |x| ≤ 87.
///
/// It does not cancel where x is small: then n is 0 and `scale` 1, so the other terms vanish, and the
/// result is r² times a polynomial.
#[inline(always)]
pub(crate) fn exp_rest_one<I: Instructions>(x: f32) -> f32 {
    let (n, r) = reduced::<I>(x);
    let scale = power(n);
    let linear = I::mul_add(scale, r, (scale - 1.0) - x);
    I::mul_add(scale, r * r * exp_tail::<I>(r), linear)
}

/// The range reduction: n and r of x = n ln 2 + r, with n a whole number and |r| ≤ ln 2 / 2.
#[inline(always)]
fn reduced<I: Instructions>(x: f32) -> (i32, f32) {
    /// A float32 of this size has no bits after the point. So adding it to a small number rounds that
    /// to a whole number, which stands in the last bits of the sum.
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23
    // ln 2 in two parts. The first has nine significant bits, so its product with n is exact.
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

/// 2^n for n in [-126, 127], by setting the exponent's bits.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// ln x = k ln 2 + ln m for x = 2^k m, with k a whole number and m in [sqrt 1/2, sqrt 2). See [`ln`]
/// for its bounds.
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

/// The polynomial in x with these coefficients, the highest power's first, by Horner's rule.
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
