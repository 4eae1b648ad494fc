//! Random numbers that are the same on every platform and with every version of `rand`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A buffer's own stream.
#[derive(Debug)]
pub(super) struct SampleStream(ChaCha8Rng);

impl SampleStream {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Runs `draw` on a new stream if a seed is given, else on this one, which goes on.
    pub(super) fn with<T>(&mut self, seed: Option<u64>, draw: impl FnOnce(&mut Self) -> T) -> T {
        match seed {
            Some(seed) => draw(&mut Self::new(seed)),
            None => draw(self),
        }
    }

    /// Uniform in `0..n`: the high word of a 64 x 64 bit product, off by less than `n / 2^64`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// Uniform in [0, 1), on the 2^53 multiples of 2^-53.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
