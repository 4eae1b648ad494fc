//! The pair P28: the infos of a step in which episodes ended, made within the step or when they are first
//! read.

use std::fmt::Write;

use numpy::PyArray1;
use pyo3::basic::CompareOp;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_bench::draw::Draw;
use rlox_bench::pair::{Contest, Pair, Twin, Workload, number};
use rlox_binding::VecEnv;
use rlox_binding::seams::FULL;

use super::results::stepping;

pub(super) struct EndInfos;

const SIZES: &[&[(&str, usize)]] = &[&[("n_envs", 1)], &[("n_envs", 64)], &[("n_envs", 1_024)]];

impl Pair for EndInfos {
    fn id(&self) -> &'static str {
        "P28"
    }

    /// Steps environments. The infos of some steps are read or changed at once, in ways that are drawn;
    /// those of others are kept and read later. All of them are written out.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        Python::attach(|py| script(py, twin, case).unwrap_or_else(|error| format!("{error}")))
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "step_numpy",
                sizes: SIZES,
                prepare: |size| steps(number(size, "n_envs"), false),
            },
            Workload {
                name: "step_and_read_numpy",
                sizes: SIZES,
                prepare: |size| steps(number(size, "n_envs"), true),
            },
        ]
    }
}

fn when_read(twin: Twin) -> bool {
    matches!(twin, Twin::Optimized)
}

fn steps(n_envs: usize, reads: bool) -> Contest {
    Box::new(move |twin| stepping(n_envs, FULL, when_read(twin), reads))
}

fn script(py: Python<'_>, twin: Twin, case: &mut Draw<'_>) -> PyResult<String> {
    let n_envs = 1 + case.below(9);
    let env = VecEnv::with_forms("CartPole-v1", n_envs, 7, FULL, when_read(twin))?;
    let env = Bound::new(py, env)?;
    env.call_method0("reset")?;
    let (mut kept, mut written) = (Vec::new(), String::new());
    for _ in 0..2 + case.below(60) {
        let actions = case.flags(n_envs, 2).into_iter().map(i64::from);
        let actions = PyArray1::from_iter(py, actions);
        let infos = env.call_method1("step", (actions,))?.get_item(4)?;
        if case.once_in(2) {
            let told = used(&infos, case);
            let told = told.map_err(|error| error.to_string());
            let _ = writeln!(written, "{told:?}");
        }
        if case.once_in(4) {
            kept.push(infos);
        } else {
            let _ = writeln!(written, "{}", infos.repr()?);
        }
    }
    for infos in kept {
        let _ = writeln!(written, "{}", infos.repr()?);
    }
    Ok(written)
}

/// The methods that take nothing.
const NAMED: [&str; 6] = ["clear", "copy", "items", "keys", "popitem", "values"];

/// Uses a dictionary in one of its ways, and shows what came of that.
fn used(infos: &Bound<'_, PyAny>, case: &mut Draw<'_>) -> PyResult<String> {
    let py = infos.py();
    let name = intern!(py, "_final_obs");
    let other = PyDict::new(py);
    other.set_item("other", 1)?;
    let found = match case.below(10) {
        0 => return Ok(format!("{}", infos.len()?)),
        1 => return Ok(format!("{}", infos.contains(name)?)),
        2 => infos.get_item(name)?,
        3 => infos.call_method1("pop", (name,))?,
        4 => infos.call_method1("setdefault", (name, 0))?,
        5 => infos.bitor(other)?,
        6 => infos.call_method1("update", (other,))?,
        7 => infos.rich_compare(PyDict::new(py), CompareOp::Eq)?,
        _ => infos.call_method0(NAMED[case.below(NAMED.len())])?,
    };
    Ok(found.repr()?.to_string())
}
