//! Counts what crosses the boundary: calls, bytes and time per function; and notes when each call
//! was (`spans`). Off until asked for; while off, a crossing pays one relaxed load.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use numpy::Ix1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Argument, BORROWS, Looks, Unguarded, made, reading};
use crate::errors::copied;
use crate::spans;

/// What is asked for: `COUNTS`, `SPANS`, both or neither.
static WANTED: AtomicU8 = AtomicU8::new(0);
const COUNTS: u8 = 1;
pub(crate) const SPANS: u8 = 2;

/// Tally of one binding function.
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

/// One call in progress; tallies when dropped.
pub(crate) struct Crossing {
    site: &'static Site,
    bytes: u64,
    start: Option<Instant>,
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

    /// Start of a call that carries `bytes` across, in both directions together.
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
    /// Bytes known only once the result is there.
    #[inline]
    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Runs `f` off the clock: what waits, or goes on on the other side, is no price of crossing.
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

/// Want some of what there is, or no longer.
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

/// Tallies since the last call, `{name: (calls, bytes, nanoseconds)}`, and a new start.
///
/// Nanoseconds run from the entry of the binding's body to its return: conversion and core work,
/// without the interpreter's own call and argument parsing. Bytes are those of the data, both ways;
/// parameters, which stay where they are, count nothing.
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

/// `array` copied in and out again: the price of a crossing that does nothing else.
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
