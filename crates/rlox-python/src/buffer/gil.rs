//! P11's seam: what happens to the global interpreter lock while a batch is sampled.

use crate::arrays::Detaching;

/// How to run work that touches nothing of Python's.
pub trait Gil {
    /// `work`, whose arrays are those of `scope`.
    fn run<T: Send>(scope: &Detaching<'_>, work: impl FnOnce() -> T + Send) -> T;
}

/// Before: the lock is held, no other Python thread runs meanwhile.
pub struct Held;

impl Gil for Held {
    fn run<T: Send>(_scope: &Detaching<'_>, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

/// After: the lock is released, other Python threads run meanwhile.
pub struct Released;

impl Gil for Released {
    fn run<T: Send>(scope: &Detaching<'_>, work: impl FnOnce() -> T + Send) -> T {
        scope.detach_briefly(work)
    }
}
