//! Generated cases: every one follows from a sequence of choices, which a property tester draws and
//! shortens. The same sequence means the same case to proptest and to hypothesis.

/// Reads choices one after the other; where they end, every further one is 0, the simplest.
#[derive(Debug)]
pub struct Draw<'a> {
    choices: std::slice::Iter<'a, u64>,
}

impl<'a> Draw<'a> {
    /// A case from `choices`.
    pub fn new(choices: &'a [u64]) -> Self {
        Self {
            choices: choices.iter(),
        }
    }

    fn next(&mut self) -> u64 {
        self.choices.next().copied().unwrap_or_default()
    }

    /// One of `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) + 1 == n
    }

    /// One of `options`, the first the simplest.
    pub fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    /// A seed.
    pub fn seed(&mut self) -> u64 {
        self.next()
    }

    /// A multiple of 1/256 in [0, 1].
    pub fn unit(&mut self) -> f64 {
        self.below(257) as f64 / 256.0
    }

    /// `n` numbers in [-2, 2), all from one choice.
    pub fn numbers(&mut self, n: usize) -> Vec<f64> {
        let seed = self.next();
        (0..n as u64)
            .map(|i| 4.0 * unit_of(seed, i) - 2.0)
            .collect()
    }

    /// `n` flags of which about one in `rarity` is set, all from one choice.
    pub fn flags(&mut self, n: usize, rarity: u64) -> Vec<bool> {
        let seed = self.next();
        (0..n as u64)
            .map(|i| mixed(seed, i).is_multiple_of(rarity))
            .collect()
    }
}

/// SplitMix64's output function on the `i`-th state from `seed`.
fn mixed(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) fn unit_of(seed: u64, i: u64) -> f64 {
    (mixed(seed, i) >> 11) as f64 / (1u64 << 53) as f64
}

/// `n` numbers in [-1, 1), the same at every run: inputs of benchmarks.
pub fn fixed_numbers(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64)
        .map(|i| 2.0 * unit_of(seed, i) - 1.0)
        .collect()
}
