//! Locks of what several threads may use, and what a fork makes of them.
//!
//! They are taken with the interpreter held, and may be kept while a call lets go of it. Who waits for
//! one lets go of the interpreter, and takes it again before it tries: nothing that a lock guards ever
//! waits for the interpreter. Nothing of Python's is called while one is held.
//!
//! A fork copies locks as they are, but no thread except the one that forks. So a fork waits for the
//! samples under way, which are short, and the child goes on with its copy of a buffer; of longer work
//! (updates, rollouts) the copy is half done, and who asks for it there is told so.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arrays::Guarded;

/// Forks that led to this process.
static PROCESS: AtomicU64 = AtomicU64::new(0);
/// Threads that a fork waits for.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// Threads about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// A number of this process: one that was forked off has another.
pub(crate) fn process() -> u64 {
    PROCESS.load(Relaxed)
}

/// A mutex that knows in which process it was locked.
pub struct Lock<T> {
    inner: Mutex<T>,
    locked_in: AtomicU64,
}

impl<T> Lock<T> {
    /// Not locked.
    pub const fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(value),
            locked_in: AtomicU64::new(0),
        }
    }

    /// Waits with the interpreter released; RuntimeError where that would be for ever.
    pub(crate) fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, T>>
    where
        T: Send,
    {
        loop {
            if let Some(guard) = self.try_lock(py)? {
                return Ok(guard);
            }
            let _busy = Busy::new(py);
            py.detach(|| drop(self.inner.lock()));
        }
    }

    /// Does not wait; None where another thread has it.
    #[inline]
    pub(crate) fn try_lock(&self, _py: Python<'_>) -> PyResult<Option<MutexGuard<'_, T>>> {
        let guard = match self.inner.try_lock() {
            Ok(guard) => guard,
            // What panics leaves it whole, or an environment between two steps, which a reset repairs.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.taken(),
        };
        self.locked_in.store(process(), Relaxed);
        Ok(Some(guard))
    }

    #[cold]
    fn taken<G>(&self) -> PyResult<Option<G>> {
        if self.locked_in.load(Relaxed) == process() {
            return Ok(None);
        }
        Err(left_behind("this was in use by another thread"))
    }
}

impl<T: Send> Guarded for Lock<T> {
    type Inner = T;

    #[inline(always)]
    fn guard<R>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> PyResult<R>) -> PyResult<R> {
        f(&mut *self.lock(py)?)
    }
}

/// The error for what stayed with a thread of the process before.
pub(crate) fn left_behind(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "{what} when this process was forked, and is lost here; make a new one"
    ))
}

/// Work that a fork waits for, until it is dropped: some milliseconds, with the interpreter released.
pub(crate) struct Busy(());

impl Busy {
    #[inline]
    pub(crate) fn new(_py: Python<'_>) -> Self {
        BUSY.store(BUSY.load(Relaxed) + 1, Relaxed); // nobody else has the interpreter
        Self(())
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        BUSY.store(BUSY.load(Relaxed).saturating_sub(1), Relaxed);
    }
}

/// Whether a thread is about to fork: what it would have to wait for is to keep the interpreter.
#[inline]
pub(crate) fn is_forking(_py: Python<'_>) -> bool {
    FORKING.load(Relaxed) > 0
}

/// Before a fork.
pub(crate) fn before_fork(_py: Python<'_>) {
    FORKING.fetch_add(1, Relaxed);
}

/// After that, with the interpreter released meanwhile.
pub(crate) fn wait_for_what_is_short(py: Python<'_>) {
    while BUSY.load(Relaxed) > 0 {
        py.detach(|| thread::sleep(Duration::from_micros(50)));
    }
}

/// After it, in the process that forked.
pub(crate) fn after_fork() {
    FORKING.fetch_sub(1, Relaxed);
}

/// After it, in the new process.
pub(crate) fn forked() {
    PROCESS.fetch_add(1, Relaxed);
    BUSY.store(0, Relaxed);
    FORKING.store(0, Relaxed);
}

/// Of a mutex that is locked with the interpreter held, and for no longer than that.
pub(crate) fn briefly<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
