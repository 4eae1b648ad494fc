//! Who has the environments: their object, or a collector of rollouts.

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
    reason = "nearly always the large one, and one a `VecEnv`"
)]
enum Whereabouts {
    Here(VecEnv),
    /// With a collector of this process, by its number.
    Lent(u64),
    /// With one that nobody has any more, whose thread ends by itself.
    Returning(u64, Arc<Shared>),
    /// With one whose thread came to an end by a panic.
    Lost,
}

impl Guarded for Envs {
    type Inner = VecEnv;

    /// An error where somebody else has the environments just now.
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

    /// `f` with the environments, of a call without arrays. Nothing of Python's can run in it.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut VecEnv) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        self.guard(py, f)
    }

    /// Hands them over to a collector.
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

    /// Takes them back; None of a collector whose thread panicked.
    pub(crate) fn restore(&self, py: Python<'_>, envs: Option<VecEnv>) -> PyResult<()> {
        *self.place(py)? = envs.map_or(Whereabouts::Lost, Whereabouts::Here);
        Ok(())
    }

    /// `collector`, which has them, was told to end, and nobody else has it any more.
    pub(crate) fn expect_from(&self, py: Python<'_>, collector: Arc<Shared>) {
        if let Ok(mut place) = self.place(py) {
            *place = Whereabouts::Returning(process(), collector);
        }
    }

    /// Those of a collector that nobody has any more, once its thread has ended.
    #[cold]
    fn take_back(&self, py: Python<'_>) -> PyResult<()> {
        let mut place = self.place(py)?;
        let collector = match &*place {
            Whereabouts::Returning(in_process, collector) if *in_process == process() => {
                Arc::clone(collector)
            }
            _ => return Ok(()),
        };
        *place = Whereabouts::Lent(process()); // nobody else takes them back meanwhile
        drop(place);
        match pipeline::ended(py, &collector) {
            Ok(envs) => self.restore(py, envs),
            Err(error) => {
                self.expect_from(py, collector);
                Err(error)
            }
        }
    }

    /// Does not wait: who steps may want the interpreter, which whoever asks here keeps.
    fn place(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Whereabouts>> {
        self.0
            .try_lock(py)?
            .ok_or_else(|| PyRuntimeError::new_err("another thread is stepping these environments"))
    }
}

impl Whereabouts {
    /// Why they are not here.
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
