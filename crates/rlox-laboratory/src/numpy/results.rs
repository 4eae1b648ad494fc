//! The pair P25: results in new arrays at every call, or in earlier ones that nobody holds any more.

use std::fmt::Write;

use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyWeakrefReference};
use rlox_bench::draw::{Draw, fixed_numbers};
use rlox_bench::pair::{Arm, Contest, Pair, Twin, Workload, arm, number};
use rlox_binding::VecEnv;
use rlox_binding::seams::{FULL, Held, IntoArrays, Lock, SampleMemory, sample_under, to_py};
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::wiring::Shipped;

use super::{Ring, SITE, TransitionArrays, sampling};

pub(super) struct ResultArrays;

impl Pair for ResultArrays {
    fn id(&self) -> &'static str {
        "P25"
    }

    /// Steps and samples. Some of their arrays are kept, and are written out again at the end: later
    /// results must not have overwritten them.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        Python::attach(|py| script(py, room(twin), case).unwrap_or_else(|error| format!("{error}")))
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "step_numpy",
                sizes: &[&[("n_envs", 1)], &[("n_envs", 64)], &[("n_envs", 1_024)]],
                prepare: |size| {
                    let n_envs = number(size, "n_envs");
                    Box::new(move |twin| stepping(n_envs, room(twin), false, false))
                },
            },
            Workload {
                name: "sample_256_numpy",
                sizes: &[&[("obs_dim", 4)], &[("obs_dim", 28_224)]],
                prepare: |size| samples(number(size, "obs_dim")),
            },
        ]
    }
}

/// How many arrays of a kind are given out again: none without P25.
fn room(twin: Twin) -> usize {
    match twin {
        Twin::Baseline => 0,
        Twin::Optimized => FULL,
    }
}

/// The arm of a contest that steps environments with random actions, so that episodes end. `reads` says
/// whether it reads the last observations of those that did, as a trainer does.
pub(super) fn stepping(
    n_envs: usize,
    room: usize,
    infos_when_read: bool,
    reads: bool,
) -> Box<dyn Arm> {
    let made = Python::attach(|py| -> PyResult<_> {
        let env = Py::new(
            py,
            VecEnv::with_forms("CartPole-v1", n_envs, 0, room, infos_when_read)?,
        )?;
        env.call_method0(py, "reset")?;
        let actions = std::array::from_fn::<_, 16, _>(|call| {
            let row = fixed_numbers(n_envs, call as u64);
            PyArray1::from_iter(py, row.into_iter().map(|x| i64::from(x > 0.0))).unbind()
        });
        Ok((env, actions))
    });
    let mut calls = 0;
    arm(move || {
        Python::attach(|py| {
            let (env, actions) = made.as_ref().ok()?;
            calls += 1;
            let actions = &actions[calls % actions.len()];
            let step = intern!(py, "step");
            let results = env.bind(py).call_method1(step, (actions,)).ok()?;
            if reads {
                let (infos, name) = (results.get_item(4).ok()?, intern!(py, "final_obs"));
                if infos.contains(name).ok()? {
                    return infos.get_item(name).ok()?.len().ok();
                }
            }
            results.len().ok()
        })
    })
}

fn samples(obs_dim: usize) -> Contest {
    Box::new(move |twin| {
        sampling::<Shipped, Held, IntoArrays>(obs_dim, 256, SampleMemory::new(room(twin)), true)
    })
}

fn script(py: Python<'_>, room: usize, case: &mut Draw<'_>) -> PyResult<String> {
    let n_envs = 1 + case.below(9);
    let env = Py::new(
        py,
        VecEnv::with_forms("CartPole-v1", n_envs, 7, room, false)?,
    )?;
    env.call_method0(py, "reset")?;
    let memory = SampleMemory::new(room);
    let ring = some_rows()?;
    let mut seen = Seen::default();
    for _ in 0..2 + case.below(60) {
        let results = if case.once_in(3) {
            let (n, seed) = (1 + case.below(2), Some(case.seed()));
            let (site, source) = (&SITE, memory.source(true));
            sample_under::<Held, IntoArrays, _, _, false>(py, &ring, source, site, n, seed)?
                .values()
                .into_any()
        } else {
            let actions = case.flags(n_envs, 2).into_iter().map(i64::from);
            let actions = PyArray1::from_iter(py, actions);
            env.bind(py).call_method1("step", (actions,))?
        };
        for result in results.try_iter()? {
            let array = result?;
            match array.cast::<PyDict>() {
                Err(_) => seen.see(array, case)?,
                Ok(infos) => {
                    if let Some(last) = infos.get_item("final_obs")? {
                        seen.see(last, case)?;
                    }
                }
            }
        }
    }
    seen.told(py)
}

/// Results that were written out. Some of them are kept, and are written out again at the end: later
/// results must not have overwritten them.
#[derive(Default)]
pub(super) struct Seen {
    kept: Vec<Py<PyAny>>,
    watched: Vec<(Py<PyWeakrefReference>, String)>,
    written: String,
}

impl Seen {
    /// Writes a result out, and holds it in some way or in none.
    pub(super) fn see(&mut self, array: Bound<'_, PyAny>, case: &mut Draw<'_>) -> PyResult<()> {
        let shown = array.repr()?.to_string();
        let _ = writeln!(self.written, "{shown}");
        match case.below(12) {
            0 => self.kept.push(array.unbind()),
            1 => self.kept.push(array.get_item(0)?.unbind()), // a row, or the first of several arrays
            2 => self.kept.push(array.call_method0("view")?.unbind()),
            3 => {
                let watching = PyWeakrefReference::new(&array)?.unbind();
                self.watched.push((watching, shown));
            }
            4 => drop(array.call_method1("setflags", (false,))?),
            _ => {}
        }
        Ok(())
    }

    /// All that was written out, and then what has become of the results that were kept.
    pub(super) fn told(mut self, py: Python<'_>) -> PyResult<String> {
        for array in &self.kept {
            let _ = writeln!(self.written, "{}", array.bind(py).repr()?);
        }
        for (array, shown) in &self.watched {
            let now = array.bind(py).upgrade().map(|array| array.repr());
            let same = now.is_none_or(|now| now.is_ok_and(|now| now == shown.as_str()));
            let _ = writeln!(self.written, "{same}");
        }
        Ok(self.written)
    }
}

/// A ring of five different transitions.
fn some_rows() -> PyResult<Ring<Shipped>> {
    let ring = Lock::new(RingBuffer::new(5, 2, 1, 0).map_err(to_py)?);
    for row in 0..5 {
        let value = f64::from(row);
        let arrays = TransitionArrays::new(vec![value, -value], vec![value]);
        arrays.push(Twin::Optimized, &ring, row as f32)?;
    }
    Ok(ring)
}
