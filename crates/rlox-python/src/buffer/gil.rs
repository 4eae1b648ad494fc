//! P11's seam: whether the GIL is held or released while a batch is sampled.

use crate::arrays::Detaching;

/// How to run work that uses no Python objects.
pub trait Gil {
    /// Runs `work`, which uses the arrays of `scope`.
    fn run<T: Send>(scope: &Detaching<'_>, work: impl FnOnce() -> T + Send) -> T;
}

/// The baseline: the GIL is held, so no other Python thread runs meanwhile.
pub struct Held;

impl Gil for Held {
    fn run<T: Send>(_scope: &Detaching<'_>, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

/// The optimised form: the GIL is released, so other Python threads run meanwhile.
pub struct Released;

impl Gil for Released {
    fn run<T: Send>(scope: &Detaching<'_>, work: impl FnOnce() -> T + Send) -> T {
        scope.detach_briefly(work)
    }
}
