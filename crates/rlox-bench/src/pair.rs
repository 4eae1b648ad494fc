//! What a pair is: two twins, cases on which they must agree, workloads at which they are timed.

use std::fmt::Debug;

use crate::draw::Draw;

/// One of the two forms of an optimisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    /// The form before.
    Baseline,
    /// The form after.
    Optimized,
}

/// Both forms of one optimisation.
pub trait Pair: Sync {
    /// Id of its card.
    fn id(&self) -> &'static str;

    /// All that `twin` does with a case, written out: equal texts are equal to the bit.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String;

    /// By how much numbers may differ, relative above 1 and absolute below; 0 is to the bit.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// What it is timed at.
    fn workloads(&self) -> &'static [Workload];
}

/// Something that training does, at several sizes.
pub struct Workload {
    /// Its name, for example `sample`.
    pub name: &'static str,
    /// The sizes, each a list of named numbers.
    pub sizes: &'static [Size<'static>],
    /// Makes what both arms share, and then an arm of either twin; of any size with these numbers.
    pub prepare: fn(Size<'_>) -> Contest,
}

/// A size, for example `[("n", 1000)]`.
pub type Size<'a> = &'a [(&'a str, usize)];

/// Makes an arm of a twin; arms of one contest read the same input buffers.
pub type Contest = Box<dyn Fn(Twin) -> Box<dyn Arm>>;

/// One side of a comparison.
pub trait Arm {
    /// One call of what is measured; lets go of what the call before returned.
    fn call(&mut self);

    /// What the last call returned, written out.
    fn outcome(&self) -> String;
}

/// An arm from a closure.
pub fn arm<T: Debug + 'static>(work: impl FnMut() -> T + 'static) -> Box<dyn Arm> {
    Box::new(Work { work, last: None })
}

struct Work<T, F> {
    work: F,
    last: Option<T>,
}

impl<T: Debug, F: FnMut() -> T> Arm for Work<T, F> {
    fn call(&mut self) {
        self.last = Some((self.work)());
    }

    fn outcome(&self) -> String {
        format!("{:?}", self.last)
    }
}

/// The number called `name` of a size.
///
/// # Panics
/// If the workload has no such number: a mistake in the workload.
pub fn number(size: Size<'_>, name: &str) -> usize {
    let found = size
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, value)| *value);
    #[expect(
        clippy::expect_used,
        reason = "sizes are written beside their only reader"
    )]
    found.expect("the workload reads only its own numbers")
}

/// Whether both twins agree on the case that `choices` make.
///
/// # Errors
/// Where they differ first.
pub fn agree(pair: &dyn Pair, choices: &[u64]) -> Result<(), String> {
    let [before, after] =
        [Twin::Baseline, Twin::Optimized].map(|twin| pair.outcome(twin, &mut Draw::new(choices)));
    near(&before, &after, pair.tolerance())
        .map_err(|difference| format!("{} on the case {choices:?}: {difference}", pair.id()))
}

/// Whether two outcomes are equal.
///
/// # Errors
/// Where they differ first.
pub fn same(before: &str, after: &str) -> Result<(), String> {
    near(before, after, 0.0)
}

/// Whether two outcomes are equal, numbers that differ by no more than `tolerance` apart.
///
/// # Errors
/// Where they differ first.
pub fn near(before: &str, after: &str, tolerance: f64) -> Result<(), String> {
    if before == after {
        return Ok(());
    }
    let close = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => tolerance > 0.0 && (a - b).abs() <= tolerance * a.abs().max(1.0),
        _ => false,
    };
    let words = |text| str::split(text, |c: char| c.is_whitespace() || "[](){},".contains(c));
    let (mut at, mut other_at) = (0, 0);
    let mut others = words(after);
    for word in words(before) {
        match others.next() {
            Some(other) if word == other || close(word, other) => {
                at += word.len() + 1;
                other_at += other.len() + 1;
            }
            _ => break,
        }
    }
    if at > before.len() && other_at > after.len() {
        return Ok(());
    }
    let around = |text: &str, at: usize| {
        let bytes = text.as_bytes();
        let window = &bytes[at.min(bytes.len()).saturating_sub(60)..bytes.len().min(at + 60)];
        String::from_utf8_lossy(window).into_owned()
    };
    Err(format!(
        "the twins differ at character {at}\n  baseline:  …{}…\n  optimized: …{}…",
        around(before, at),
        around(after, other_at)
    ))
}
