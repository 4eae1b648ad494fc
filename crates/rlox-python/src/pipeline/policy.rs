//! The policy of a collector: calls two Python callables from the collector's thread.

use numpy::{Ix1, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::pipeline::rollout::{ActionBatch, Decision, Policy};

use crate::arrays::{Argument, BORROWS, Looks, Reading, Unguarded, made, reading};
use crate::crossing::{COLLECTOR_ACT, COLLECTOR_VALUE};
use crate::env::ActionArray;
use crate::errors::copied;

/// `act` and `value` of `AsyncCollector`.
pub(super) struct PyPolicy {
    pub(super) act: Py<PyAny>,
    pub(super) value: Py<PyAny>,
    pub(super) action_space: Space,
}

impl Policy for PyPolicy {
    type Error = PyErr;

    fn act(&mut self, obs: &[f32], n: usize) -> PyResult<Decision> {
        attached(|py| {
            let mut crossing = COLLECTOR_ACT.enter(size_of_val(obs));
            let obs = made::copied(py, obs)?.reshape([n, obs.len() / n])?;
            let result = crossing.excluding(|| self.act.bind(py).call1((obs,)))?;
            let (actions, log_probs, values): (
                Bound<'_, PyAny>,
                Bound<'_, PyAny>,
                Bound<'_, PyAny>,
            ) = result.extract()?;
            let converted = ActionArray::converted(&self.action_space, &actions)?;
            let actions = converted.as_ref().unwrap_or(&actions);
            let actions = Argument::new("actions", actions);
            let log_probs = Argument::new("log_probs", &log_probs);
            let values = Argument::new("values", &values);
            let space = &self.action_space;
            reading(py, &Unguarded, BORROWS, |(), look| {
                let actions = ActionArray::look(look, space, n, actions)?;
                crossing.add_bytes(actions.n_bytes() + n * 2 * size_of::<f32>());
                Ok(Decision {
                    actions: match actions.view() {
                        Actions::Discrete(actions) => ActionBatch::Discrete(copied(actions)?),
                        Actions::Continuous(actions) => ActionBatch::Continuous(copied(actions)?),
                    },
                    log_probs: vector(look, log_probs, n)?,
                    values: vector(look, values, n)?,
                })
            })
        })
    }

    fn values(&mut self, obs: &[f32], n: usize) -> PyResult<Vec<f32>> {
        attached(|py| {
            let mut crossing = COLLECTOR_VALUE.enter(size_of_val(obs) + n * size_of::<f32>());
            let obs = made::copied(py, obs)?.reshape([n, obs.len() / n])?;
            let values = crossing.excluding(|| self.value.bind(py).call1((obs,)))?;
            let values = Argument::new("values", &values);
            reading(py, &Unguarded, BORROWS, |(), look| vector(look, values, n))
        })
    }
}

/// A copy of an array, float32 `[n]`.
fn vector(look: &Reading<'_>, argument: Argument<'_>, n: usize) -> PyResult<Vec<f32>> {
    copied(&look.read::<f32, Ix1>(argument, Some(&[n]))?)
}

/// Calls `f` with the GIL held; RuntimeError while the interpreter shuts down.
pub(super) fn attached<R>(f: impl FnOnce(Python<'_>) -> PyResult<R>) -> PyResult<R> {
    Python::try_attach(f)
        .unwrap_or_else(|| Err(PyRuntimeError::new_err("the interpreter is shutting down")))
}
