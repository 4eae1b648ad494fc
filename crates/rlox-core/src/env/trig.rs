//! Sine and cosine of eight angles at once.
//!
//! Each angle is reduced to [-pi/4, pi/4]: a multiple of pi/2 is subtracted in three pieces (Cody and
//! Waite, 1980). There the Taylor series are summed, up to the last term that can change the result. The
//! error is at most two units in the last place. Only additions and multiplications are used, so every
//! instruction set gives the same bits.

use std::f64::consts::FRAC_2_PI;

use super::physics::LANES;

/// pi/2 as the sum of three pieces. The first two have at most 33 significant bits, so that their products
/// with the number of quadrants, which has at most 20, are exact.
const HALF_PI: [f64; 3] = [
    f64::from_bits(0x3ff9_21fb_5440_0000),
    f64::from_bits(0x3dd0_b461_1a60_0000),
    f64::from_bits(0x3ba3_198a_2e03_7073),
];
/// Adding this number rounds to an integer, since f64 of its size are whole numbers. The lowest bits of
/// the sum are those of the integer.
const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
/// The largest angle that is reduced here. Up to it the number of quadrants has at most 20 bits, as
/// [`HALF_PI`] needs. For larger angles the standard library is called.
const LIMIT: f64 = 1e6;

/// The coefficients of sine's Taylor series from the angle's third power on: `1 / n!`, with
/// alternating signs.
const SIN: [f64; 8] = [
    -1.0 / 6.0,
    1.0 / 120.0,
    -1.0 / 5_040.0,
    1.0 / 362_880.0,
    -1.0 / 39_916_800.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 355_687_428_096_000.0,
];
/// The coefficients of cosine's Taylor series from the angle's fourth power on.
const COS: [f64; 7] = [
    1.0 / 24.0,
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 20_922_789_888_000.0,
];

/// The sine and the cosine of each angle.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "a loop over lanes is written to be vectorised"
)]
pub(super) fn sin_cos(angles: &[f64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    let (mut sines, mut cosines) = ([0.0; LANES], [0.0; LANES]);
    for l in 0..LANES {
        let shifted = angles[l] * FRAC_2_PI + ROUND;
        let quadrants = shifted - ROUND;
        let r = angles[l] - quadrants * HALF_PI[0];
        let r = r - quadrants * HALF_PI[1];
        let r = r - quadrants * HALF_PI[2];

        let z = r * r;
        let [s0, s1, s2, s3, s4, s5, s6, s7] = SIN;
        let series = s5 + z * (s6 + z * s7);
        let series = s0 + z * (s1 + z * (s2 + z * (s3 + z * (s4 + z * series))));
        let sin = r + r * z * series;
        let [c0, c1, c2, c3, c4, c5, c6] = COS;
        let series = c0 + z * (c1 + z * (c2 + z * (c3 + z * (c4 + z * (c5 + z * c6)))));
        // `(1 - most) - half` is the rounding error of `1 - half`. It is added to the small terms.
        let half = 0.5 * z;
        let most = 1.0 - half;
        let cos = most + (((1.0 - most) - half) + z * z * series);

        // In odd quadrants sine and cosine are exchanged. The sine is negative in quadrants 2 and 3, the
        // cosine in 1 and 2: the sign follows from the second bit of the quadrant, or of the next one.
        let quadrant = shifted.to_bits();
        let odd = quadrant & 1 == 1;
        let (sine, cosine) = if odd { (cos, sin) } else { (sin, cos) };
        sines[l] = f64::from_bits(sine.to_bits() ^ ((quadrant & 2) << 62));
        cosines[l] = f64::from_bits(cosine.to_bits() ^ ((quadrant.wrapping_add(1) & 2) << 62));
    }
    // Without a branch for each lane, as `all` would have. NaN is not within the limit.
    let within = |all: bool, angle: &f64| all & (angle.abs() <= LIMIT);
    if !angles.iter().fold(true, within) {
        // Only the lanes beyond the limit are replaced, so that no lane's result depends on the others.
        for l in 0..LANES {
            let within = angles[l].abs() <= LIMIT;
            if !within {
                (sines[l], cosines[l]) = (angles[l].sin(), angles[l].cos());
            }
        }
    }
    (sines, cosines)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    fn check(angles: [f64; LANES]) {
        let (sines, cosines) = sin_cos(&angles);
        for l in 0..LANES {
            for (found, expected) in [(sines[l], angles[l].sin()), (cosines[l], angles[l].cos())] {
                let error = (found - expected).abs();
                assert!(error <= 5e-16 * expected.abs(), "{} {found}", angles[l]);
            }
        }
    }

    proptest! {
        #[test]
        fn they_are_the_librarys_to_the_last_places(
            small in prop::array::uniform8(-0.3..0.3_f64),
            middle in prop::array::uniform8(-20.0..20.0_f64),
            large in prop::array::uniform8(-1e6..1e6_f64),
        ) {
            check(small);
            check(middle);
            check(large);
        }
    }

    #[test]
    fn borders_of_quadrants_and_what_is_no_angle() {
        check(std::array::from_fn(|l| (l as f64 - 4.0) * PI / 4.0));
        check(std::array::from_fn(|l| (l as f64 - 4.0) * PI / 2.0));
        check([0.0, -0.0, 1e-300, -1e-9, 1e6, -1e6, 999_999.9, 0.5]);
        let (sines, cosines) = sin_cos(&[f64::NAN, f64::INFINITY, 1e300, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(sines[0].is_nan() && cosines[1].is_nan());
        assert_eq!((sines[2], cosines[2]), (1e300_f64.sin(), 1e300_f64.cos()));
    }

    #[test]
    fn an_angle_beyond_the_limit_is_no_matter_to_its_neighbours() {
        for i in 0..1_000 {
            let mut angles = [f64::from(i) * 0.1; LANES];
            let (expected, _) = sin_cos(&angles);
            angles[LANES - 1] = [2.0 * LIMIT, f64::NAN][i as usize % 2];
            let (found, _) = sin_cos(&angles);
            assert_eq!(found[..LANES - 1], expected[..LANES - 1], "{angles:?}");
        }
    }
}
