//! `rlox._laboratory.pairs`: compares and times the two forms (twins) of each optimisation, for the
//! workbench and its tests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyAssertionError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use rlox_bench::pair::{self, Contest, Pair, Twin, Workload};
use rlox_bench::pairs::PAIRS;
use rlox_bench::timing::{self, Refused};
use rlox_binding::seams::{List, reserved};

use crate::numpy;

/// The size of a workload: numbers by name, such as `{"obs_dim": 4}`.
type Size = BTreeMap<String, usize>;

/// The pairs of the core, and those whose twins need an interpreter.
fn all() -> impl Iterator<Item = &'static dyn Pair> {
    PAIRS.iter().chain(numpy::PAIRS).copied()
}

/// All workloads of all pairs: `[(id, workload, sizes)]`, each size a dictionary of numbers.
#[pyfunction]
fn catalogue() -> Vec<(&'static str, &'static str, Vec<Size>)> {
    let owned = |size: &[(&str, usize)]| -> Size {
        size.iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect()
    };
    let rows = |pair: &'static dyn Pair| {
        let workloads = pair.workloads().iter();
        workloads.map(move |workload| {
            let sizes = workload.sizes.iter().map(|size| owned(size)).collect();
            (pair.id(), workload.name, sizes)
        })
    };
    all().flat_map(rows).collect()
}

/// Runs both twins of the pair `id` on a case that `choices` decide, as random numbers would. Raises
/// AssertionError with the first difference if their outcomes differ, ValueError for an unknown id.
#[pyfunction]
fn agree(id: &str, choices: List<u64>) -> PyResult<()> {
    let mut known = false;
    for pair in all().filter(|pair| pair.id() == id) {
        known = true;
        pair::agree(pair, &choices.0).map_err(PyAssertionError::new_err)?;
    }
    if known { Ok(()) } else { Err(unknown(id)) }
}

/// By how much a number may differ between the twins of `id`: relative above 1, absolute below. 0 is to
/// the bit.
#[pyfunction]
fn tolerance(id: &str) -> PyResult<f64> {
    all()
        .find(|pair| pair.id() == id)
        .map(Pair::tolerance)
        .ok_or_else(|| unknown(id))
}

/// Checks that both twins return the same, then times them in turn for about `seconds`. `seed` decides
/// their order.
///
/// Returns `(log_ratio, log_ratio_aa, baseline_s, optimized_s, rounds)`: the median over the rounds of
/// ln(baseline time / optimised time), the same for the baseline against itself, the median time of a
/// call of each twin in seconds, and the number of rounds.
///
/// Raises AssertionError if the twins differ, MemoryError if there is no memory for them, ValueError for an
/// unknown id, workload or size.
#[pyfunction]
fn contest(
    id: &str,
    workload: &str,
    size: Size,
    seconds: f64,
    seed: u64,
) -> PyResult<(f64, f64, f64, f64, usize)> {
    let patience = Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "seconds: is {seconds}, expected a number from 0 to 2**64"
        ))
    })?;
    let reading = timing::contest(
        &prepared(id, workload, &size)?,
        tolerance(id)?,
        patience,
        seed,
    )
    .map_err(|refused| match refused {
        Refused::NoMemory => PyMemoryError::new_err(format!(
            "size: there is no memory for both forms of {id} at {workload} of this size"
        )),
        Refused::Differ(difference) => PyAssertionError::new_err(difference),
    })?;
    Ok((
        reading.log_ratio,
        reading.log_ratio_aa,
        reading.baseline_s,
        reading.optimized_s,
        reading.rounds,
    ))
}

/// One twin of a pair with a workload, ready to be called. `twin` is "baseline" or "optimized".
#[pyclass(module = "rlox._laboratory.pairs", unsendable)]
struct Arm(Box<dyn pair::Arm>);

#[pymethods]
impl Arm {
    #[new]
    fn new(id: &str, workload: &str, size: Size, twin: &str) -> PyResult<Self> {
        let twin = match twin {
            "baseline" => Twin::Baseline,
            "optimized" => Twin::Optimized,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "twin: is {twin:?}, expected \"baseline\" or \"optimized\""
                )));
            }
        };
        Ok(Self(prepared(id, workload, &size)?(twin)))
    }

    /// Makes `calls` calls, and returns the seconds that they took together.
    fn time(&mut self, calls: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..calls {
            self.0.call();
        }
        start.elapsed().as_secs_f64()
    }

    /// What the last call returned, as text.
    fn outcome(&self) -> String {
        self.0.outcome()
    }
}

fn prepared(id: &str, workload: &str, size: &Size) -> PyResult<Contest> {
    let of_pair: Vec<&Workload> = all()
        .filter(|pair| pair.id() == id)
        .flat_map(|pair| pair.workloads())
        .collect();
    if of_pair.is_empty() {
        return Err(unknown(id));
    }
    let Some(found) = of_pair.iter().find(|w| w.name == workload) else {
        let names: Vec<_> = of_pair.iter().map(|workload| workload.name).collect();
        return Err(PyValueError::new_err(format!(
            "workload: is {workload:?}, expected one of {}",
            names.join(", ")
        )));
    };
    let names: Vec<_> = found.sizes[0].iter().map(|(name, _)| *name).collect();
    let given: Vec<_> = size
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let complete = names
        .iter()
        .all(|name| given.iter().any(|(n, value)| n == name && *value > 0));
    if !complete || given.len() != names.len() {
        return Err(PyValueError::new_err(format!(
            "size: is {given:?}, expected positive numbers for {}",
            names.join(", ")
        )));
    }
    // MemoryError before an allocation aborts: the inputs take some tens of bytes for each element, and
    // the product of the size's numbers is at least the number of elements.
    let elements = given
        .iter()
        .try_fold(64usize, |n, (_, m)| n.checked_mul(*m));
    drop(reserved::<u8>(elements.unwrap_or(usize::MAX))?);
    Ok((found.prepare)(&given))
}

fn unknown(id: &str) -> PyErr {
    let mut ids: Vec<_> = all().map(Pair::id).collect();
    ids.sort_unstable_by_key(|id| (id.len(), *id)); // P2 before P10
    ids.dedup(); // some ids have a pair in the core and one in the binding
    PyValueError::new_err(format!("id: is {id:?}, expected one of {}", ids.join(", ")))
}

/// Compares and times the two forms (twins) of each optimisation, for the workbench and its tests.
#[pymodule(name = "pairs")]
pub(crate) mod module {
    #[pymodule_export]
    use super::{Arm, agree, catalogue, contest, tolerance};
}
