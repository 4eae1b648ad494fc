//! The pair P29: results of functions in new arrays at every call, or in earlier ones that nobody holds
//! any more.

use numpy::PyArray1;
use pyo3::prelude::*;
use rlox_bench::draw::{Draw, fixed_numbers};
use rlox_bench::pair::{Contest, Pair, Twin, Workload, arm, number};
use rlox_binding::seams::{ResultArrays, gae_in};

use super::results::Seen;

pub(super) struct FunctionResults;

static NEW: ResultArrays = ResultArrays::new(false);
static AGAIN: ResultArrays = ResultArrays::new(true);

fn arrays(twin: Twin) -> &'static ResultArrays {
    match twin {
        Twin::Baseline => &NEW,
        Twin::Optimized => &AGAIN,
    }
}

impl Pair for FunctionResults {
    fn id(&self) -> &'static str {
        "P29"
    }

    /// Advantages of sequences of a few lengths and either type. Some results are kept, and written out
    /// again at the end: later results must not have overwritten them.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        Python::attach(|py| {
            script(py, arrays(twin), case).unwrap_or_else(|error| format!("{error}"))
        })
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "gae_numpy",
            sizes: &[
                &[("n", 128)],
                &[("n", 2_048)],
                &[("n", 32_768)],
                &[("n", 524_288)],
                &[("n", 1_048_576)],
            ],
            prepare: |size| sequences(number(size, "n")),
        }]
    }
}

/// Advantages of one sequence. The caller holds the results of the call before, as a program does that
/// gives them a name.
fn sequences(n: usize) -> Contest {
    Box::new(move |twin| {
        let columns = Python::attach(|py| columns::<f64>(py, n, |i| fixed_numbers(n, i)));
        let mut held = None;
        arm(move || {
            Python::attach(|py| {
                held = Some(call(py, arrays(twin), &columns).ok()?);
                held.as_ref().map(|(_, returns)| returns.is_none(py))
            })
        })
    })
}

type Columns = [Py<PyAny>; 3];

/// Rewards, values and flags of no end.
fn columns<T: numpy::Element + From<f32> + Copy>(
    py: Python<'_>,
    n: usize,
    mut numbers: impl FnMut(u64) -> Vec<f64>,
) -> Columns {
    let mut array = |column: u64| {
        let values = if column == 2 {
            vec![0.0; n]
        } else {
            numbers(column)
        };
        let values = values.into_iter().map(|x| T::from(x as f32));
        PyArray1::from_iter(py, values).into_any().unbind()
    };
    [array(0), array(1), array(2)]
}

fn call(
    py: Python<'_>,
    arrays: &ResultArrays,
    columns: &Columns,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let columns = columns.each_ref().map(|column| column.bind(py));
    let (advantages, returns) = gae_in(arrays, columns, [0.5, 0.99, 0.95], None)?;
    Ok((advantages.unbind(), returns.unbind()))
}

fn script(py: Python<'_>, arrays: &ResultArrays, case: &mut Draw<'_>) -> PyResult<String> {
    let mut seen = Seen::default();
    for _ in 0..2 + case.below(60) {
        let n = 1 + case.below(3);
        let columns = if case.once_in(2) {
            columns::<f64>(py, n, |_| case.numbers(n))
        } else {
            columns::<f32>(py, n, |_| case.numbers(n))
        };
        let (advantages, returns) = call(py, arrays, &columns)?;
        seen.see(advantages.into_bound(py), case)?;
        seen.see(returns.into_bound(py), case)?;
    }
    seen.told(py)
}
