//! Who has the environments of a `VecEnv`: that object, or the collector that they were lent to. A
//! collector's thread steps them without the GIL, so nobody else may meanwhile.

use std::sync::{Arc, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rlox_core::switchboard::VecEnv;

use crate::arrays::Guarded;
use crate::lock::{Lock, left_behind, process};
use crate::pipeline::{self, Shared};

/// Environments that may be lent.
pub(crate) struct Envs(Lock<Whereabouts>);

#[allow(
    clippy::large_enum_variant,
    reason = "it is nearly always the large one, and there is one for each `VecEnv`"
)]
enum Whereabouts {
    Here(VecEnv),
    /// With a collector that was made in the process of this number ([`process`]).
    Lent(u64),
    /// With a collector that Python has dropped. Its thread was told to end, and gives them back then.
    Returning(u64, Arc<Shared>),
    /// Dropped by a collector's thread that panicked.
    Lost,
}

impl Guarded for Envs {
    type Inner = VecEnv;

    /// RuntimeError where a collector or another thread has the environments. Takes them back first
    /// from a collector that was dropped.
    #[inline]
    fn guard<R>(&self, py: Python<'_>, f: impl FnOnce(&mut VecEnv) -> PyResult<R>) -> PyResult<R> {
        let mut place = self.place(py)?;
        if let Whereabouts::Here(envs) = &mut *place {
            return f(envs);
        }
        drop(place);
        self.take_back(py)?;
        match &mut *self.place(py)? {
            Whereabouts::Here(envs) => f(envs),
            elsewhere => Err(elsewhere.told()),
        }
    }
}

impl Envs {
    pub(crate) fn new(envs: VecEnv) -> Self {
        Self(Lock::new(Whereabouts::Here(envs)))
    }

    /// Calls `f` with the environments, for a call that has no arrays. `f` is `Send`, so it cannot run
    /// Python.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut VecEnv) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        self.guard(py, f)
    }

    /// Gives the environments to a collector.
    pub(crate) fn lend(&self, py: Python<'_>) -> PyResult<VecEnv> {
        self.with(py, |_| Ok(()))?;
        let mut place = self.place(py)?;
        match std::mem::replace(&mut *place, Whereabouts::Lent(process())) {
            Whereabouts::Here(envs) => Ok(envs),
            elsewhere => {
                let told = elsewhere.told();
                *place = elsewhere;
                Err(told)
            }
        }
    }

    /// Puts back the environments from a collector; None if its thread panicked.
    pub(crate) fn restore(&self, py: Python<'_>, envs: Option<VecEnv>) -> PyResult<()> {
        *self.place(py)? = envs.map_or(Whereabouts::Lost, Whereabouts::Here);
        Ok(())
    }

    /// Notes that `collector`, which has the environments, was dropped and told to end.
    pub(crate) fn expect_from(&self, py: Python<'_>, collector: Arc<Shared>) {
        if let Ok(mut place) = self.place(py) {
            *place = Whereabouts::Returning(process(), collector);
        }
    }

    /// Takes the environments back from a collector that was dropped, if that is where they are. Waits
    /// until its thread has ended.
    #[cold]
    fn take_back(&self, py: Python<'_>) -> PyResult<()> {
        let mut place = self.place(py)?;
        let collector = match &*place {
            Whereabouts::Returning(in_process, collector) if *in_process == process() => {
                Arc::clone(collector)
            }
            _ => return Ok(()),
        };
        *place = Whereabouts::Lent(process()); // so that no other thread takes them back meanwhile
        drop(place);
        match pipeline::ended(py, &collector) {
            Ok(envs) => self.restore(py, envs),
            Err(error) => {
                self.expect_from(py, collector);
                Err(error)
            }
        }
    }

    /// RuntimeError where another thread holds the lock. It does not wait for the lock, since that
    /// thread may need the GIL, which the caller keeps.
    fn place(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Whereabouts>> {
        self.0
            .try_lock(py)?
            .ok_or_else(|| PyRuntimeError::new_err("another thread is stepping these environments"))
    }
}

impl Whereabouts {
    /// The error that says why the environments are not here.
    fn told(&self) -> PyErr {
        match self {
            Self::Lent(in_process) | Self::Returning(in_process, _) if *in_process != process() => {
                left_behind("an AsyncCollector had these environments")
            }
            Self::Lost => PyRuntimeError::new_err(
                "these environments were lost with the thread of an AsyncCollector; make new ones",
            ),
            _ => PyRuntimeError::new_err(
                "an AsyncCollector has these environments; close() it first",
            ),
        }
    }
}
