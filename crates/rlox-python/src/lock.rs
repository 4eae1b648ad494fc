//! The locks of objects that several threads may use, and what becomes of them in a fork.
//!
//! **No deadlock with the GIL.** A lock is taken with the GIL held, and may be kept while a call
//! releases the GIL. [`Lock::lock`] never waits with the GIL held, and nothing calls Python while it
//! holds a lock.
//!
//! **Forks.** A fork copies locks as they are, but of the threads only the one that forks. A lock that
//! another thread held would stay locked in the child. So a fork waits for short work (samples), and
//! the child goes on with a whole copy of the buffer. Longer work (updates, rollouts) is waited
//! for only if another thread waits for its lock. Otherwise the child's copy of it is half done, and
//! using it there is an error.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arrays::Guarded;

/// The number of forks that led to this process, which tells it from its parents.
static PROCESS: AtomicU64 = AtomicU64::new(0);
/// The number of threads that a fork must wait for.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// The number of threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// The number of this process; a child has another one than its parent.
pub(crate) fn process() -> u64 {
    PROCESS.load(Relaxed)
}

/// A mutex that knows in which process it was last locked.
pub struct Lock<T> {
    inner: Mutex<T>,
    locked_in: AtomicU64,
}

impl<T> Lock<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(value),
            locked_in: AtomicU64::new(0),
        }
    }

    /// Locks; waits with the GIL released if another thread has the lock. RuntimeError if that thread
    /// was left behind by a fork, and the wait would never end.
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

    /// Locks without waiting. None if another thread has the lock, RuntimeError if that was left behind
    /// by a fork.
    #[inline]
    pub(crate) fn try_lock(&self, _py: Python<'_>) -> PyResult<Option<MutexGuard<'_, T>>> {
        let guard = match self.inner.try_lock() {
            Ok(guard) => guard,
            // A panic leaves the value usable: whole, or environments between two steps, which a reset
            // repairs.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.taken(),
        };
        self.locked_in.store(process(), Relaxed);
        Ok(Some(guard))
    }

    /// The result of [`Self::try_lock`] where the mutex is locked.
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

/// The error for `what` a thread of the parent process held at a fork.
pub(crate) fn left_behind(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "{what} when this process was forked, and is lost here; make a new one"
    ))
}

/// A guard for work that a fork must wait for. It is made and dropped with the GIL held; between, the
/// GIL may be released for some milliseconds.
pub(crate) struct Busy(());

impl Busy {
    #[inline]
    pub(crate) fn new(_py: Python<'_>) -> Self {
        BUSY.store(BUSY.load(Relaxed) + 1, Relaxed); // the GIL is held, so no other thread changes it
        Self(())
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        BUSY.store(BUSY.load(Relaxed).saturating_sub(1), Relaxed);
    }
}

/// Whether a thread is about to fork. Then work that it would have to wait for must not begin with the
/// GIL released.
#[inline]
pub(crate) fn is_forking(_py: Python<'_>) -> bool {
    FORKING.load(Relaxed) > 0
}

/// Notes that this thread is about to fork.
pub(crate) fn before_fork(_py: Python<'_>) {
    FORKING.fetch_add(1, Relaxed);
}

/// Waits for the end of short work, with the GIL released; to be called after [`before_fork`], so that
/// no more begins.
pub(crate) fn wait_for_what_is_short(py: Python<'_>) {
    while BUSY.load(Relaxed) > 0 {
        py.detach(|| thread::sleep(Duration::from_micros(50)));
    }
}

/// Notes in the parent that the fork is over.
pub(crate) fn after_fork() {
    FORKING.fetch_sub(1, Relaxed);
}

/// Notes in the child that it is another process, without the parent's threads.
pub(crate) fn forked() {
    PROCESS.fetch_add(1, Relaxed);
    BUSY.store(0, Relaxed);
    FORKING.store(0, Relaxed);
}

/// Locks a mutex that is only ever held while the GIL is, so it is never waited for.
pub(crate) fn briefly<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
