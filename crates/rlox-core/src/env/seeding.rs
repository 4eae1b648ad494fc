//! Random numbers from a seed as NumPy makes them: the same as of `default_rng(seed).uniform`, to the bit.
//! So an environment with a seed starts in the same state as Gymnasium's.
//!
//! Sources: M. E. O'Neill, "Developing a seed_seq alternative" (2015), in the form of NumPy's
//! `SeedSequence` with a pool of four words; PCG XSL RR 128/64 (O'Neill, 2014) from `rand_pcg`.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// Words of `SeedSequence`'s pool.
const POOL_SIZE: usize = 4;
const SHIFT: u32 = 16;

/// `SeedSequence`'s hash of a word. Its constant is multiplied at each word, so that equal words get
/// different hashes.
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

/// `SeedSequence`'s mixture of a word `x` of the pool with a hash `y`.
fn mix(x: u32, y: u32) -> u32 {
    let word = x
        .wrapping_mul(0xca01_f9dd)
        .wrapping_sub(y.wrapping_mul(0x4973_f715));
    word ^ (word >> SHIFT)
}

/// The generator of `numpy.random.default_rng(seed)`.
///
/// The four 32-bit words of a 128-bit seed fill the pool exactly. NumPy fills the pool up with zeros for
/// shorter seeds, and mixes further words in for longer ones, which a `u128` cannot be.
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
    // The first four words are PCG's state, the others its stream. NumPy makes a number of 64 bits from
    // two words, the low one first, and one of 128 bits from two such numbers, the high one first.
    let half = |i: usize| u128::from(words[2 * i]) | u128::from(words[2 * i + 1]) << 32;
    Pcg64::new(half(0) << 64 | half(1), half(2) << 64 | half(3))
}

/// A number from `[low, high)` with 53 random bits, as NumPy's `Generator.uniform` draws it.
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
