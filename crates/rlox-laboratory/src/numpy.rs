//! Pairs that are measured through the binding, with NumPy's arrays: P3's push and P4's sample, whose
//! forms are the core's, and P11, whose forms are the binding's. P20 and P23 are in [`arrays`], P25 is
//! in [`results`], P28 in [`infos`], P29 in [`functions`].

mod arrays;
mod functions;
mod infos;
mod results;

use std::fmt::{Debug, Write};
use std::rc::Rc;

use numpy::{Ix1, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_bench::draw::{Draw, fixed_numbers};
use rlox_bench::pair::{Arm, Pair, Twin, Workload, arm, number};
use rlox_bench::pairs::{AfterP4, PUSH_SIZES, SAMPLE_SIZES, rows_for};
use rlox_binding::seams::{
    Argument, BORROWS, Borrows, ByBatch, Gil, Held, Lock, Looks, PushArguments, Released,
    SampleMemory, Sampling, Site, Source, Unguarded, push, reading, sample_under,
};
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{BufferWiring, intake};
use rlox_core::wiring::Shipped;

pub(crate) const PAIRS: &[&dyn Pair] = &[
    &Intake,
    &BatchMemory,
    &GilWhileSampling,
    &arrays::SampleArrays,
    &arrays::HeldArrays,
    &results::ResultArrays,
    &infos::EndInfos,
    &functions::FunctionResults,
];

struct Intake;
struct BatchMemory;
struct GilWhileSampling;

/// The tally that calls of the binding need; nobody reads it.
static SITE: Site = Site::new("pairs");

type Ring<W> = Lock<RingBuffer<f32, W>>;

/// The arrays of a transition, float32 `[obs_dim]` and `[act_dim]`. The next observation is the same as
/// the observation.
struct TransitionArrays {
    obs: Py<PyAny>,
    action: Py<PyAny>,
}

impl TransitionArrays {
    fn new(obs: Vec<f64>, action: Vec<f64>) -> Self {
        Python::attach(|py| {
            let array = |values: Vec<f64>| {
                let narrow = values.into_iter().map(|value| value as f32).collect();
                PyArray1::from_vec(py, narrow).into_any().unbind()
            };
            Self {
                obs: array(obs),
                action: array(action),
            }
        })
    }

    /// Pushes the transition by the given form of P3.
    fn push<W: BufferWiring>(&self, twin: Twin, ring: &Ring<W>, reward: f32) -> PyResult<()> {
        let borrows = Borrows::Counted;
        self.with(reward, |one| match twin {
            Twin::Baseline => push(ring, &SITE, one, borrows, intake::baseline::push),
            Twin::Optimized => push(ring, &SITE, one, borrows, intake::optimized::push),
        })
    }

    /// Calls `f` with the arguments of a push.
    fn with<R>(&self, reward: f32, f: impl FnOnce(&PushArguments<'_, '_>) -> R) -> R {
        Python::attach(|py| {
            f(&PushArguments {
                obs: self.obs.bind(py),
                next_obs: self.obs.bind(py),
                action: self.action.bind(py),
                reward,
                terminated: false,
                truncated: reward > 0.0,
            })
        })
    }
}

fn ring<W: BufferWiring>(capacity: usize, obs_dim: usize, act_dim: usize) -> Option<Ring<W>> {
    RingBuffer::new(capacity, obs_dim, act_dim, 0)
        .ok()
        .map(Lock::new)
}

/// A full ring. Its capacity is smaller for wide rows.
fn filled<W: BufferWiring>(obs_dim: usize) -> Option<Ring<W>> {
    let capacity = rows_for(obs_dim);
    let ring = ring(capacity, obs_dim, 1)?;
    let arrays = TransitionArrays::new(fixed_numbers(obs_dim, 1), vec![0.5]);
    for row in 0..capacity {
        arrays.push(Twin::Optimized, &ring, row as f32).ok()?;
    }
    Some(ring)
}

/// Writes a sampled dictionary out to the last byte, or the error.
fn write_batch(written: &mut String, batch: PyResult<Bound<'_, PyDict>>) -> PyResult<()> {
    let batch = batch.map_err(|error| {
        let _ = writeln!(written, "{error}");
        error
    })?;
    for (name, column) in batch.iter() {
        let bytes: Vec<u8> = column.call_method0("tobytes")?.extract()?;
        let shape: Vec<usize> = column.getattr("shape")?.extract()?;
        let _ = writeln!(written, "{name} {shape:?} {bytes:?}");
    }
    Ok(())
}

/// Draws pushes and samples in random order, and writes out what each returned. Some pushes have a
/// wrong width.
fn script<W: BufferWiring, G: Gil, S: Sampling>(
    push: impl Fn(&TransitionArrays, &Ring<W>, f32) -> PyResult<()>,
    source: Source<'_>,
    case: &mut Draw<'_>,
) -> String {
    let mut written = String::new();
    let (obs_dim, act_dim) = (1 + case.below(6), 1 + case.below(3));
    let Some(ring) = ring::<W>(1 + case.below(5), obs_dim, act_dim) else {
        return written;
    };
    for _ in 0..2 + case.below(12) {
        if case.once_in(3) {
            let (batch_size, seed) = (case.below(6), case.once_in(2).then(|| case.seed()));
            let _ = Python::attach(|py| {
                let batch =
                    sample_under::<G, S, _, _, false>(py, &ring, source, &SITE, batch_size, seed);
                write_batch(&mut written, batch)
            });
        } else {
            let width = if case.once_in(8) {
                obs_dim + 1
            } else {
                obs_dim
            };
            let arrays = TransitionArrays::new(case.numbers(width), case.numbers(act_dim));
            let pushed = push(&arrays, &ring, case.unit() as f32);
            let _ = writeln!(written, "{:?}", pushed.map_err(|error| error.to_string()));
        }
    }
    written
}

/// Memory in which every array is new.
fn fresh() -> SampleMemory {
    SampleMemory::new(0)
}

/// A script for pairs that differ in sampling alone.
fn sampled<W: BufferWiring, G: Gil, S: Sampling>(
    source: Source<'_>,
    case: &mut Draw<'_>,
) -> String {
    let push = |arrays: &TransitionArrays, ring: &Ring<W>, x| arrays.push(Twin::Baseline, ring, x);
    script::<W, G, S>(push, source, case)
}

/// The arm of a contest that samples `batch_size` transitions with arrays of `memory`.
fn sampling<W: BufferWiring, G: Gil + 'static, S: Sampling + 'static>(
    obs_dim: usize,
    batch_size: usize,
    memory: SampleMemory,
    copy: bool,
) -> Box<dyn Arm> {
    let ring = filled::<W>(obs_dim);
    arm(move || {
        Python::attach(|py| {
            let (ring, source) = (ring.as_ref()?, memory.source(copy));
            let batch =
                sample_under::<G, S, _, _, false>(py, ring, source, &SITE, batch_size, None);
            first_reward(&batch.ok()?)
        })
    })
}

fn first_reward(batch: &Bound<'_, PyDict>) -> Option<impl Debug + use<>> {
    let rewards = batch.get_item("reward").ok()??;
    let rewards = Argument::new("reward", &rewards);
    reading(batch.py(), &Unguarded, BORROWS, |(), look| {
        Ok(look.read::<f32, Ix1>(rewards, None)?.first().copied())
    })
    .ok()?
}

impl Pair for Intake {
    fn id(&self) -> &'static str {
        "P3"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let push = |arrays: &TransitionArrays, ring: &Ring<_>, x| arrays.push(twin, ring, x);
        script::<Shipped, Held, ByBatch>(push, fresh().source(true), case)
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "push_numpy",
            sizes: PUSH_SIZES,
            prepare: |size| {
                let (obs_dim, act_dim) = (number(size, "obs_dim"), number(size, "act_dim"));
                let numbers = [obs_dim, act_dim].map(|n| fixed_numbers(n, 1));
                let [obs, action] = numbers;
                let arrays = Rc::new(TransitionArrays::new(obs, action));
                Box::new(move |twin| {
                    let arrays = Rc::clone(&arrays);
                    let ring = ring::<Shipped>(rows_for(obs_dim), obs_dim, act_dim);
                    arm(move || arrays.push(twin, ring.as_ref()?, 1.0).ok())
                })
            },
        }]
    }
}

impl Pair for BatchMemory {
    fn id(&self) -> &'static str {
        "P4"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => sampled::<Shipped, Held, ByBatch>(fresh().source(true), case),
            Twin::Optimized => sampled::<AfterP4, Held, ByBatch>(fresh().source(true), case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "sample_256_numpy",
            sizes: SAMPLE_SIZES,
            prepare: |size| {
                let obs_dim = number(size, "obs_dim");
                Box::new(move |twin| match twin {
                    Twin::Baseline => {
                        sampling::<Shipped, Held, ByBatch>(obs_dim, 256, fresh(), true)
                    }
                    Twin::Optimized => {
                        sampling::<AfterP4, Held, ByBatch>(obs_dim, 256, fresh(), true)
                    }
                })
            },
        }]
    }
}

impl Pair for GilWhileSampling {
    fn id(&self) -> &'static str {
        "P11"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        match twin {
            Twin::Baseline => sampled::<Shipped, Held, ByBatch>(fresh().source(true), case),
            Twin::Optimized => sampled::<Shipped, Released, ByBatch>(fresh().source(true), case),
        }
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "sample_256_numpy",
            sizes: &[&[("obs_dim", 3)], &[("obs_dim", 28_224)]],
            prepare: |size| {
                let obs_dim = number(size, "obs_dim");
                Box::new(move |twin| match twin {
                    Twin::Baseline => {
                        sampling::<Shipped, Held, ByBatch>(obs_dim, 256, fresh(), true)
                    }
                    Twin::Optimized => {
                        sampling::<Shipped, Released, ByBatch>(obs_dim, 256, fresh(), true)
                    }
                })
            },
        }]
    }
}
