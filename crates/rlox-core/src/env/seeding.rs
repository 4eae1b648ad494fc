//! A seed means here what it means to NumPy: `default_rng(seed).uniform` draws the same numbers, bit
//! by bit, so that a seeded environment starts where Gymnasium's does.
//!
//! Sources: M. E. O'Neill, "Developing a seed_seq alternative" (2015), as fixed by NumPy's
//! `SeedSequence` (pool of four words); PCG XSL RR 128/64 (O'Neill, 2014) from `rand_pcg`.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

const POOL_SIZE: usize = 4;
const SHIFT: u32 = 16;

/// A multiplicative hash whose constant moves on with every word.
struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    const ENTROPY: Self = Self {
        constant: 0x43b0_d7e5,
        multiplier: 0x931e_8875,
    };
    const OUTPUT: Self = Self {
        constant: 0x8b51_f9dd,
        multiplier: 0x58f3_8ded,
    };

    fn next(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let word = word.wrapping_mul(self.constant);
        word ^ (word >> SHIFT)
    }
}

fn mix(x: u32, y: u32) -> u32 {
    let word = x
        .wrapping_mul(0xca01_f9dd)
        .wrapping_sub(y.wrapping_mul(0x4973_f715));
    word ^ (word >> SHIFT)
}

/// The generator of `numpy.random.default_rng(seed)`.
///
/// A 128-bit seed fills the pool of four words exactly, so that shorter seeds are zero-extended and
/// no entropy is left to fold in.
pub fn rng_from_seed(seed: u128) -> Pcg64 {
    let mut hash = Hash::ENTROPY;
    let mut pool: [u32; POOL_SIZE] = std::array::from_fn(|i| hash.next((seed >> (32 * i)) as u32));
    for source in 0..POOL_SIZE {
        for target in (0..POOL_SIZE).filter(|&target| target != source) {
            pool[target] = mix(pool[target], hash.next(pool[source]));
        }
    }

    let mut hash = Hash::OUTPUT;
    let words: [u32; 8] = std::array::from_fn(|i| hash.next(pool[i % POOL_SIZE]));
    // Each 64-bit half is little-endian in its words, but the high half comes first.
    let half = |i: usize| u128::from(words[2 * i]) | u128::from(words[2 * i + 1]) << 32;
    Pcg64::new(half(0) << 64 | half(1), half(2) << 64 | half(3))
}

/// A draw from `[low, high)` with 53 random bits, NumPy's `Generator.uniform`.
#[inline]
pub fn uniform(rng: &mut Pcg64, low: f64, high: f64) -> f64 {
    let unit = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    low + (high - low) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.random.default_rng(seed).bit_generator.random_raw(3)`.
    #[test]
    fn raw_words_are_numpys() {
        let expected: [(u128, [u64; 3]); 4] = RAW;
        for (seed, words) in expected {
            let mut rng = rng_from_seed(seed);
            assert_eq!(
                words,
                [rng.next_u64(), rng.next_u64(), rng.next_u64()],
                "{seed}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn uniform_stays_within_its_bounds(seed: u128, low in -1e3..1e3, width in 1e-3..1e3) {
            let mut rng = rng_from_seed(seed);
            for _ in 0..20 {
                let drawn = uniform(&mut rng, low, low + width);
                proptest::prop_assert!(low <= drawn && drawn <= low + width);
            }
        }
    }

    const RAW: [(u128, [u64; 3]); 4] = [
        (
            0,
            [
                11749869230777074271,
                4976686463289251617,
                755828109848996024,
            ],
        ),
        (
            42,
            [
                14276969152011380360,
                8095878257575067585,
                15838336090824644132,
            ],
        ),
        (
            1099511627783,
            [
                15307346044642009514,
                4709548916763817589,
                2836937976252648324,
            ],
        ),
        (
            340282366920938463463374607431768211455,
            [
                4480973156916348641,
                12910314733789139919,
                7289664815039144501,
            ],
        ),
    ];
}
