//! The class `PrioritizedReplayBuffer`.

use numpy::Ix1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::buffer::{Replay, intake};
use rlox_core::switchboard as buffer;

use super::sampling::{self, SampleMemory};
use super::{ByObs, PushArguments, each, obs_are_bytes};
use crate::arrays::{Argument, BORROWS, Float, Looks, Number, ROOM, Reading, reading};
use crate::crossing::{PER_PUSH, PER_PUSH_BATCH, PER_SAMPLE, PER_UPDATE_PRIORITIES};
use crate::errors::{reserved, to_py};
use crate::lock::Lock;
use crate::numbers::{seed as convert_seed, size};

/// A ring of transitions, sampled in proportion to their priorities.
///
/// Proportional, stratified prioritised replay (Schaul et al. 2016, section 3.3): transition i is
/// drawn with probability ``p_i^alpha / sum(p^alpha)`` and weighs ``(N * P(i))^-beta``, divided by the
/// largest such weight in the buffer. A new transition gets the largest priority seen so far, at
/// first 1. A transition with a priority of zero is never drawn, except with alpha = 0, where
/// priorities do not count.
///
/// Safe to use from several threads: a call waits for the one before it.
///
/// Parameters
/// ----------
/// capacity : int
///     How many transitions the buffer holds; a push to a full one overwrites the oldest. Memory is
///     reserved at once. Up to 40 bytes of each transition are used from the start, the rest as the
///     buffer fills.
/// obs_dim, act_dim : int
///     Elements of a flattened observation and action.
/// alpha : float, at least 0
///     How strongly priorities count; 0 is uniform.
/// beta : float, at least 0
///     How far the importance weights correct for the priorities; 1 is fully.
/// obs_dtype : "float32" or "uint8"
/// seed : int
///     Of the random numbers that samples are drawn by (ChaCha8: the same on every platform).
///
/// Raises
/// ------
/// ValueError
///     A dimension below 1, an exponent, an unknown dtype, more memory than there is.
#[pyclass(frozen, module = "rlox._core")]
pub struct PrioritizedReplayBuffer {
    inner: ByObs<buffer::PrioritizedReplayBuffer<f32>, buffer::PrioritizedReplayBuffer<u8>>,
    memory: SampleMemory,
}

#[pymethods]
impl PrioritizedReplayBuffer {
    #[new]
    #[pyo3(signature = (
        capacity, obs_dim, act_dim, alpha=0.6, beta=0.4, obs_dtype="float32", seed=0
    ))]
    fn new(
        capacity: i64,
        obs_dim: i64,
        act_dim: i64,
        alpha: f64,
        beta: f64,
        obs_dtype: &str,
        seed: i128,
    ) -> PyResult<Self> {
        use buffer::PrioritizedReplayBuffer as Buffer;
        let seed = convert_seed(seed)?;
        let n = size("capacity", capacity)?;
        let obs_dim = size("obs_dim", obs_dim)?;
        let act_dim = size("act_dim", act_dim)?;
        let inner = if obs_are_bytes(obs_dtype)? {
            ByObs::U8(Lock::new(
                Buffer::new(n, obs_dim, act_dim, alpha, beta, seed).map_err(to_py)?,
            ))
        } else {
            ByObs::F32(Lock::new(
                Buffer::new(n, obs_dim, act_dim, alpha, beta, seed).map_err(to_py)?,
            ))
        };
        Ok(Self {
            inner,
            memory: SampleMemory::new(ROOM),
        })
    }

    /// Store one transition, with the largest priority seen so far.
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
        each!(self.inner, ring => super::push(ring, &PER_PUSH, &transition, BORROWS, intake::push))
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
        each!(self.inner, buffer => super::push_batch(buffer, &PER_PUSH_BATCH, BORROWS, columns))
    }

    /// Draw a batch: one transition from each of batch_size equal parts of the sum of priorities.
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
    ///     (batch_size,) bool, ``weights`` (batch_size,) float32 in [0, 1], ``indices``
    ///     (batch_size,) int64 for update_priorities.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A batch size below 1, or above what any memory holds.
    /// RuntimeError
    ///     An empty buffer, or one where every priority is zero.
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
            sampling::sample::<_, _, true>(py, buffer, source, &PER_SAMPLE, batch_size, seed)
        })
    }

    /// Set the priorities of sampled transitions: all of them or, on an error, none.
    ///
    /// Parameters
    /// ----------
    /// indices : ndarray, shape (n,), int64
    ///     From a sample. If an index occurs twice, its last priority counts.
    /// priorities : ndarray, shape (n,), float64 or float32
    ///     At least 0, usually |TD error| plus a small constant.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A wrong shape, an index of no stored transition, a priority that is negative, NaN or so
    ///     large that the sum overflows.
    /// TypeError
    ///     An argument that is no array, or has another dtype.
    fn update_priorities(
        &self,
        indices: &Bound<'_, PyAny>,
        priorities: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut crossing = PER_UPDATE_PRIORITIES.enter(0);
        let py = indices.py();
        let indices = Argument::new("indices", indices);
        let priorities = Argument::new("priorities", priorities);
        each!(self.inner, buffer => reading(py, buffer, BORROWS, |buffer, look| {
            let indices = look.read::<i64, Ix1>(indices, None)?;
            let (priorities, given) = wide(look, priorities)?;
            crossing.add_bytes(size_of_val(&indices[..]) + given);
            buffer.update_priorities(&indices, &priorities).map_err(to_py)
        }))
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

    /// How strongly priorities count; 0 is uniform.
    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        each!(self.inner, buffer => Ok(buffer.lock(py)?.alpha()))
    }

    /// How far the importance weights correct for the priorities; usually annealed to 1 over training.
    #[getter]
    fn get_beta(&self, py: Python<'_>) -> PyResult<f64> {
        each!(self.inner, buffer => Ok(buffer.lock(py)?.beta()))
    }

    #[setter]
    fn set_beta(&self, py: Python<'_>, beta: f64) -> PyResult<()> {
        each!(self.inner, buffer => buffer.lock(py)?.set_beta(beta)).map_err(to_py)
    }
}

/// The numbers of an array, float64 or float32, as float64, and the bytes of the array.
fn wide(look: &Reading<'_>, numbers: Argument<'_>) -> PyResult<(Vec<f64>, usize)> {
    fn of<T: Number + Into<f64>>(
        look: &Reading<'_>,
        numbers: Argument<'_>,
    ) -> PyResult<(Vec<f64>, usize)> {
        let numbers = look.read::<T, Ix1>(numbers, None)?;
        let mut wide = reserved(numbers.len())?;
        wide.extend(numbers.iter().map(|&number| number.into()));
        Ok((wide, size_of_val(&numbers[..])))
    }
    match look.float_type(numbers)? {
        Float::F64 => of::<f64>(look, numbers),
        Float::F32 => of::<f32>(look, numbers),
    }
}
