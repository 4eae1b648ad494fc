//! The random numbers of a rollout, all drawn before it begins.
//!
//! They come from a counter-based generator (ChaCha8), with a stream of its own for each rollout. So a
//! rollout does not depend on what was drawn before it, nor on the number of threads.

use std::f32::consts::TAU;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::MlpPolicy;
use crate::RloxError;
use crate::memory::reserved;

/// The stream that a rollout's random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The trainer's seed.
    pub seed: u64,
    /// The number of the rollout in the trainer.
    pub rollout: u64,
}

impl Stream {
    fn words(self) -> impl Iterator<Item = u32> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.rollout);
        std::iter::repeat_with(move || rng.next_u32())
    }

    /// The random numbers for `n` actions of `policy`.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(super) fn noise(self, policy: &MlpPolicy, n: usize) -> Result<Vec<f32>, RloxError> {
        let n = n * policy.noise_per_action();
        if policy.takes_normals() {
            self.normals(n)
        } else {
            self.uniforms(n)
        }
    }

    /// `n` numbers uniform in [0, 1), multiples of 2^-24.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn uniforms(self, n: usize) -> Result<Vec<f32>, RloxError> {
        let mut uniforms = reserved(n)?;
        let unit = |word| (word >> 8) as f32 * (1.0 / (1 << 24) as f32);
        uniforms.extend(self.words().map(unit).take(n));
        Ok(uniforms)
    }

    /// `n` standard normals, by Box and Muller (1958): of each two uniform numbers, the first gives the
    /// length of a vector of two normals, at most 6.7, and the second its direction.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn normals(self, n: usize) -> Result<Vec<f32>, RloxError> {
        let mut words = self.words();
        let mut normals = reserved(n.saturating_add(1))?;
        while normals.len() < n
            && let (Some(length), Some(direction)) = (words.next(), words.next())
        {
            // In (0, 1], by all 32 bits: near 0, where the logarithm needs it, a float has the
            // precision for them.
            let unit = (length as f32 + 1.0) * (1.0 / (1_u64 << 32) as f32);
            let length = (-2.0 * unit.ln()).sqrt();
            let (sin, cos) = ((direction >> 8) as f32 * (TAU / (1 << 24) as f32)).sin_cos();
            normals.extend([length * cos, length * sin]);
        }
        normals.truncate(n);
        Ok(normals)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_distributed_as_it_should_be() {
        let n = 100_001;
        let stream = Stream {
            seed: 3,
            rollout: 4,
        };
        let (uniforms, normals) = (stream.uniforms(n).unwrap(), stream.normals(n).unwrap());
        assert_eq!((uniforms.len(), normals.len()), (n, n));
        assert!(uniforms.iter().all(|u| (0.0..1.0).contains(u)));
        let share =
            |of: &[f32], below: f32| of.iter().filter(|&&x| x < below).count() as f64 / n as f64;
        // Five standard deviations of the share of 100,000 numbers are at most 0.008.
        for p in [0.01f32, 0.25, 0.5, 0.9] {
            assert!((share(&uniforms, p) - f64::from(p)).abs() < 0.008);
        }
        for (z, p) in [
            (-2.0f32, 0.02275),
            (-1.0, 0.15866),
            (0.0, 0.5),
            (0.5, 0.69146),
            (2.5, 0.99379),
        ] {
            assert!((share(&normals, z) - p).abs() < 0.008, "{z}");
        }
        // The two of a pair, and neighbouring pairs, are uncorrelated.
        for lag in [1, 2] {
            let products = normals
                .iter()
                .zip(&normals[lag..])
                .map(|(a, b)| f64::from(a * b));
            assert!((products.sum::<f64>() / n as f64).abs() < 0.016);
        }
    }
}
