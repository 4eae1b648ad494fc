//! The class `ReplayBuffer`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::buffer::{Replay, intake};
use rlox_core::switchboard as buffer;

use super::sampling::{self, SampleMemory};
use super::{ByObs, PushArguments, each, obs_are_bytes};
use crate::arrays::{BORROWS, ROOM};
use crate::crossing::{REPLAY_PUSH, REPLAY_PUSH_BATCH, REPLAY_SAMPLE};
use crate::errors::to_py;
use crate::lock::Lock;
use crate::numbers::{seed as convert_seed, size};

/// A ring of transitions, sampled uniformly with replacement.
///
/// Safe to use from several threads: a call waits for the one before it.
///
/// Parameters
/// ----------
/// capacity : int
///     How many transitions the buffer holds; a push to a full one overwrites the oldest. Memory is
///     reserved at once. A few bytes of each transition are used from the start, the rest as the buffer
///     fills.
/// obs_dim, act_dim : int
///     Elements of a flattened observation and action.
/// obs_dtype : "float32" or "uint8"
/// seed : int
///     Of the random numbers that samples are drawn by (ChaCha8: the same on every platform).
///
/// Raises
/// ------
/// ValueError
///     A dimension below 1, an unknown dtype, more memory than there is.
#[pyclass(frozen, subclass, module = "rlox._core")]
pub struct ReplayBuffer {
    inner: ByObs<buffer::ReplayBuffer<f32>, buffer::ReplayBuffer<u8>>,
    memory: SampleMemory,
}

#[pymethods]
impl ReplayBuffer {
    #[new]
    #[pyo3(signature = (capacity, obs_dim, act_dim, obs_dtype="float32", seed=0))]
    fn new(
        capacity: i64,
        obs_dim: i64,
        act_dim: i64,
        obs_dtype: &str,
        seed: i128,
    ) -> PyResult<Self> {
        let seed = convert_seed(seed)?;
        let capacity = size("capacity", capacity)?;
        let obs_dim = size("obs_dim", obs_dim)?;
        let act_dim = size("act_dim", act_dim)?;
        let inner = if obs_are_bytes(obs_dtype)? {
            ByObs::U8(Lock::new(
                buffer::ReplayBuffer::new(capacity, obs_dim, act_dim, seed).map_err(to_py)?,
            ))
        } else {
            ByObs::F32(Lock::new(
                buffer::ReplayBuffer::new(capacity, obs_dim, act_dim, seed).map_err(to_py)?,
            ))
        };
        Ok(Self {
            inner,
            memory: SampleMemory::new(ROOM),
        })
    }

    /// Store one transition.
    ///
    /// Parameters
    /// ----------
    /// obs, next_obs : ndarray, shape (obs_dim,), of the buffer's obs_dtype
    /// action : ndarray, shape (act_dim,), float32
    /// reward : float
    /// terminated, truncated : bool
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A wrong shape, an array not contiguous in C order, a reward that is not finite.
    /// TypeError
    ///     An argument that is no array, or has another dtype.
    fn push(
        &self,
        obs: &Bound<'_, PyAny>,
        next_obs: &Bound<'_, PyAny>,
        action: &Bound<'_, PyAny>,
        reward: f32,
        terminated: bool,
        truncated: bool,
    ) -> PyResult<()> {
        let transition = PushArguments {
            obs,
            next_obs,
            action,
            reward,
            terminated,
            truncated,
        };
        each!(self.inner, ring => super::push(ring, &REPLAY_PUSH, &transition, BORROWS, intake::push))
    }

    /// Store n transitions, in order: all of them or, on an error, none.
    ///
    /// Parameters
    /// ----------
    /// obs, next_obs : ndarray, shape (n, obs_dim), of the buffer's obs_dtype
    /// action : ndarray, shape (n, act_dim), float32
    /// reward : ndarray, shape (n,), float32
    /// terminated, truncated : ndarray, shape (n,), bool
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A wrong shape, an array not contiguous in C order, a reward that is not finite.
    /// TypeError
    ///     An argument that is no array, or has another dtype.
    fn push_batch(
        &self,
        obs: &Bound<'_, PyAny>,
        next_obs: &Bound<'_, PyAny>,
        action: &Bound<'_, PyAny>,
        reward: &Bound<'_, PyAny>,
        terminated: &Bound<'_, PyAny>,
        truncated: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let columns = [obs, next_obs, action, reward, terminated, truncated];
        each!(self.inner, buffer => super::push_batch(buffer, &REPLAY_PUSH_BATCH, BORROWS, columns))
    }

    /// Draw a batch, uniformly and with replacement.
    ///
    /// Parameters
    /// ----------
    /// batch_size : int
    /// seed : int, optional
    ///     Of a new stream of random numbers for this draw; without it the buffer's own goes on.
    /// copy : bool
    ///     With True, arrays that you hold are never overwritten: each sample has new arrays, or
    ///     those of an earlier sample that nobody refers to any more (the buffer keeps up to four of
    ///     each kind). With False, a call with the batch size of the call before returns the same
    ///     arrays and overwrites them, so only one thread at a time may use them. New arrays take their place
    ///     if one was marked read-only, or is being read by an update in another thread. In both
    ///     cases NumPy refuses to ``resize`` the arrays in place.
    ///
    /// Returns
    /// -------
    /// dict of ndarrays
    ///     ``obs``, ``next_obs`` (batch_size, obs_dim) of obs_dtype, ``action`` (batch_size,
    ///     act_dim) float32, ``reward`` (batch_size,) float32, ``terminated`` and ``truncated``
    ///     (batch_size,) bool.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A batch size below 1, or above what any memory holds.
    /// RuntimeError
    ///     An empty buffer.
    /// MemoryError
    ///     A batch that there is no memory for.
    #[pyo3(signature = (batch_size, seed=None, copy=true))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        batch_size: i64,
        seed: Option<i128>,
        copy: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let batch_size = size("batch_size", batch_size)?;
        let seed = seed.map(convert_seed).transpose()?;
        let source = self.memory.source(copy);
        each!(self.inner, buffer => {
            sampling::sample::<_, _, false>(py, buffer, source, &REPLAY_SAMPLE, batch_size, seed)
        })
    }

    /// All transitions, the oldest first.
    ///
    /// Returns
    /// -------
    /// dict of ndarrays
    ///     As `sample` returns them, `len(self)` rows, in new arrays; `push_batch` takes them.
    ///
    /// Raises
    /// ------
    /// MemoryError
    ///     Too little memory for the copies, which are as large as the transitions in the buffer.
    fn transitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        each!(self.inner, buffer => sampling::transitions(py, buffer))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        each!(self.inner, buffer => Ok(buffer.lock(py)?.storage().len()))
    }

    /// How many transitions the buffer holds now: `len(self)` by Stable-Baselines3's name.
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.__len__(py)
    }

    /// How many transitions the buffer can hold.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
        each!(self.inner, buffer => Ok(buffer.lock(py)?.storage().capacity()))
    }
}
