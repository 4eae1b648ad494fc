//! What a pair is: two twins, cases on which they must agree, workloads at which they are timed.

use std::fmt::Debug;

use crate::close::close;
use crate::draw::Draw;

/// One of the two forms of an optimisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    /// The baseline: what the optimisation is measured against.
    Baseline,
    /// The optimised form.
    Optimized,
}

/// Both forms of one optimisation.
pub trait Pair: Sync {
    /// Id of its card.
    fn id(&self) -> &'static str;

    /// All that `twin` does with a case, written out: equal texts are equal to the bit. Where there is
    /// a tolerance, numbers of f32 end in `f32`.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String;

    /// By how much the twins may differ in a number: that of its card.
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
    same(&before, &after, pair.tolerance())
        .map_err(|difference| format!("{} on the case {choices:?}: {difference}", pair.id()))
}

/// Whether two outcomes are equal, or their numbers within `tolerance`.
///
/// # Errors
/// Where they differ first.
pub fn same(before: &str, after: &str, tolerance: f64) -> Result<(), String> {
    if before == after || (tolerance > 0.0 && close(before, after, tolerance)) {
        return Ok(());
    }
    let at = before
        .bytes()
        .zip(after.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let bytes = text.as_bytes();
        let window = &bytes[at.saturating_sub(60)..bytes.len().min(at + 60)];
        String::from_utf8_lossy(window).into_owned()
    };
    Err(format!(
        "the twins differ at character {at}\n  baseline:  …{}…\n  optimized: …{}…",
        around(before),
        around(after)
    ))
}
