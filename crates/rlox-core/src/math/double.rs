//! exp in float64, by the same method as in float32: see the module above.

use super::horner;
use crate::simd::Instructions;

/// e^x within 2 ulp. The result is 0 below -708, shortly before it would be denormal, and infinity
/// above 709.8.
#[inline(always)]
pub(crate) fn exp_one<I: Instructions>(x: f64) -> f64 {
    let (n, r) = reduced::<I>(x.clamp(-708.0, 710.0));
    let e_r = 1.0 + I::mul_add(r * r, exp_tail::<I>(r), r);
    // 2^(n-1) times 2: 2^1024 is not a float64, although 2^1024 e^r may be one.
    let y = e_r * power(n.wrapping_sub(1)) * 2.0;
    if x < -708.0 { 0.0 } else { y }
}

/// `exp(x) - 1 - x` with a relative error of at most 4e-15, for |x| ≤ 700.
#[inline(always)]
pub(crate) fn exp_rest_one<I: Instructions>(x: f64) -> f64 {
    let (n, r) = reduced::<I>(x);
    let scale = power(n);
    let linear = I::mul_add(scale, r, (scale - 1.0) - x);
    I::mul_add(scale, r * r * exp_tail::<I>(r), linear)
}

/// The range reduction: n and r of x = n ln 2 + r, with n a whole number and |r| ≤ ln 2 / 2. n is in
/// two's complement.
#[inline(always)]
fn reduced<I: Instructions>(x: f64) -> (u64, f64) {
    /// A float64 of this size has no bits after the point: see the one of float32.
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    // ln 2 in two parts. The first has 21 trailing zero bits, so its product with n is exact.
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let shifted = I::mul_add(x, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = I::mul_add(n, -LN_2_HIGH, x);
    let r = I::mul_add(n, -LN_2_LOW, r);
    (shifted.to_bits().wrapping_sub(ROUND.to_bits()), r)
}

/// (e^r - 1 - r) / r². What is left out is below 3e-16 of it. The even and the odd powers are polynomials
/// of their own, since one of ten coefficients would keep the processor waiting for each product in turn.
#[inline(always)]
fn exp_tail<I: Instructions>(r: f64) -> f64 {
    let square = r * r;
    let even = horner::<I, _, 5>(
        square,
        [
            2.762_004_677_003_807e-7,
            2.480_152_139_601_497_4e-5,
            0.001_388_888_891_713_865,
            0.041_666_666_666_624_31,
            0.500_000_000_000_000_1,
        ],
    );
    let odd = horner::<I, _, 5>(
        square,
        [
            2.506_817_284_344_388e-8,
            2.755_735_549_686_162e-6,
            1.984_126_978_467_522e-4,
            0.008_333_333_333_356_197,
            0.166_666_666_666_666_44,
        ],
    );
    I::mul_add(odd, r, even)
}

/// 2^n for n in [-1022, 1023], by setting the exponent's bits.
#[inline(always)]
fn power(n: u64) -> f64 {
    f64::from_bits(n.wrapping_add(1023) << 52)
}
