//! The random numbers of samples. They are made from ChaCha8's words here, and not by the distributions of
//! `rand`, so that they are the same on every platform and with every version of `rand`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The random numbers that a buffer draws its samples by.
#[derive(Debug)]
pub(super) struct SampleStream(ChaCha8Rng);

impl SampleStream {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Calls `draw` with a new stream if there is a seed, and with this stream, which goes on, if not.
    pub(super) fn with<T>(&mut self, seed: Option<u64>, draw: impl FnOnce(&mut Self) -> T) -> T {
        match seed {
            Some(seed) => draw(&mut Self::new(seed)),
            None => draw(self),
        }
    }

    /// A number uniform in `0..n`: the high 64 bits of the product of `n` and a random word. Each
    /// probability is within 2^-64 of 1 / n.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// A number uniform in [0, 1), a multiple of 2^-53.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
