//! Counts the calls that cross the boundary from Python, their bytes and their time, for each function
//! of the binding; `rlox-opt profile` shows them. It can also record when each call was (`spans`).
//!
//! Both are off until asked for, and then cost a call one relaxed load.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use numpy::Ix1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Argument, BORROWS, Looks, Unguarded, made, reading};
use crate::errors::copied;
use crate::spans;

/// What is switched on, bit by bit: `COUNTS`, `SPANS`, both or neither.
static WANTED: AtomicU8 = AtomicU8::new(0);
const COUNTS: u8 = 1;
pub(crate) const SPANS: u8 = 2;

/// A function of the binding, and the tally of its calls.
pub struct Site {
    pub(crate) name: &'static str,
    calls: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

macro_rules! sites {
    ($($ident:ident = $name:literal),* $(,)?) => {
        $(pub(crate) static $ident: Site = Site::new($name);)*
        pub(crate) static SITES: &[&Site] = &[$(&$ident),*];
    };
}

sites! {
    SAMPLER_DRAW = "ActionSampler.draw",
    COLLECT_ROLLOUT = "collect_rollout",
    COLLECT_PYTHON_ROLLOUT = "collect_python_rollout",
    COLLECTOR_ACT = "AsyncCollector.act",
    COLLECTOR_VALUE = "AsyncCollector.value",
    COLLECTOR_START = "AsyncCollector.start",
    COLLECTOR_TAKE = "AsyncCollector.take",
    ROUNDTRIP = "roundtrip",
    VEC_ENV_RESET = "VecEnv.reset",
    VEC_ENV_STEP = "VecEnv.step",
    GAE = "compute_gae",
    GAE_BATCHED = "compute_gae_batched",
    VTRACE = "compute_vtrace",
    TOKEN_KL = "compute_token_kl",
    GROUP_ADVANTAGES = "compute_group_advantages",
    REPLAY_PUSH = "ReplayBuffer.push",
    REPLAY_PUSH_BATCH = "ReplayBuffer.push_batch",
    REPLAY_SAMPLE = "ReplayBuffer.sample",
    PER_PUSH = "PrioritizedReplayBuffer.push",
    PER_PUSH_BATCH = "PrioritizedReplayBuffer.push_batch",
    PER_SAMPLE = "PrioritizedReplayBuffer.sample",
    PPO_UPDATE = "ppo_update",
    PER_UPDATE_PRIORITIES = "PrioritizedReplayBuffer.update_priorities",
    SAC_ACT = "SacUpdate.act",
    SAC_UPDATE = "SacUpdate.update",
}

/// A call in progress. When dropped, it adds the call to the tally of its function.
pub(crate) struct Crossing {
    site: &'static Site,
    bytes: u64,
    /// None if nothing was switched on when the call began.
    start: Option<Instant>,
    /// Time that does not count.
    excluded: Duration,
}

impl Site {
    /// No calls yet.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        }
    }

    /// Begins a call that carries `bytes` across the boundary, both directions together.
    #[inline]
    pub(crate) fn enter(&'static self, bytes: usize) -> Crossing {
        Crossing {
            site: self,
            bytes: bytes as u64,
            start: (WANTED.load(Relaxed) != 0).then(Instant::now),
            excluded: Duration::ZERO,
        }
    }
}

impl Crossing {
    /// Adds bytes that are known only in the course of the call.
    #[inline]
    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Runs `f` without counting its time. It is for waiting and for code in Python, which are not the
    /// price of the crossing.
    #[inline]
    pub(crate) fn excluding<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let paused = self.start.map(|_| Instant::now());
        let result = f();
        if let Some(paused) = paused {
            self.excluded += paused.elapsed();
        }
        result
    }
}

impl Drop for Crossing {
    #[inline]
    fn drop(&mut self) {
        let Some(start) = self.start else { return };
        let (end, wanted) = (Instant::now(), WANTED.load(Relaxed));
        if wanted & COUNTS != 0 {
            let took = (end - start).saturating_sub(self.excluded);
            self.site.calls.fetch_add(1, Relaxed);
            self.site.bytes.fetch_add(self.bytes, Relaxed);
            self.site.nanos.fetch_add(took.as_nanos() as u64, Relaxed);
        }
        if wanted & SPANS != 0 {
            spans::note(self.site, start, end);
        }
    }
}

/// Switches `COUNTS` or `SPANS` on or off.
pub(crate) fn want(what: u8, on: bool) {
    if on {
        WANTED.fetch_or(what, Relaxed);
    } else {
        WANTED.fetch_and(!what, Relaxed);
    }
}

/// Switch the counting of boundary crossings on or off.
#[pyfunction]
pub fn count_crossings(on: bool) {
    want(COUNTS, on);
}

/// Returns the tallies since the last call, `{name: (calls, bytes, nanoseconds)}`, and sets them to
/// zero.
///
/// The time of a call is that of the binding's function: conversion and the core's work, without the
/// interpreter's parsing of arguments. Bytes are those of the data, both directions together. Networks'
/// parameters, which are used in place, do not count.
#[pyfunction]
pub fn take_crossings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let tallies = PyDict::new(py);
    for site in SITES {
        let tally = (
            site.calls.swap(0, Relaxed),
            site.bytes.swap(0, Relaxed),
            site.nanos.swap(0, Relaxed),
        );
        if tally.0 > 0 {
            tallies.set_item(site.name, tally)?;
        }
    }
    Ok(tallies)
}

/// Copies `array`, float64 `[n]`, into Rust and back: what a crossing costs that does nothing else.
///
/// Raises TypeError for another dtype, ValueError for another shape, MemoryError.
#[pyfunction]
pub fn roundtrip<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let mut crossing = ROUNDTRIP.enter(0);
    let array = Argument::new("array", array);
    let values = reading(py, &Unguarded, BORROWS, |(), look| {
        copied(&look.read::<f64, Ix1>(array, None)?)
    })?;
    crossing.add_bytes(2 * size_of_val(&values[..]));
    let shape = [values.len()];
    made::owned(py, values, shape)
}
