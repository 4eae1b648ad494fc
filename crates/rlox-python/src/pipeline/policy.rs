//! The policy of a collector: two callables of Python's.
#![allow(
    unsafe_code,
    reason = "arrays are read where they lie, which is sound while the interpreter is kept"
)]

use numpy::{Ix1, PyArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::pipeline::rollout::{ActionBatch, Decision, Policy};

use crate::arrays::{input, made};
use crate::crossing::{COLLECTOR_ACT, COLLECTOR_VALUE};
use crate::env::ActionArray;
use crate::errors::reserved;

/// Two Python callables.
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
            let actions = ActionArray::extract(&self.action_space, n, actions)?;
            // SAFETY: the interpreter is kept until they are copied.
            let actions = unsafe { actions.view() };
            let actions_are = match actions {
                Actions::Discrete(actions) => size_of_val(actions),
                Actions::Continuous(actions) => size_of_val(actions),
            };
            let decision = Decision {
                actions: match actions {
                    Actions::Discrete(actions) => ActionBatch::Discrete(copy(actions)?),
                    Actions::Continuous(actions) => ActionBatch::Continuous(copy(actions)?),
                },
                log_probs: vector("log_probs", &log_probs, n)?,
                values: vector("values", &values, n)?,
            };
            crossing.add_bytes(actions_are + n * 2 * size_of::<f32>());
            Ok(decision)
        })
    }

    fn values(&mut self, obs: &[f32], n: usize) -> PyResult<Vec<f32>> {
        attached(|py| {
            let mut crossing = COLLECTOR_VALUE.enter(size_of_val(obs) + n * size_of::<f32>());
            let obs = made::copied(py, obs)?.reshape([n, obs.len() / n])?;
            let values = crossing.excluding(|| self.value.bind(py).call1((obs,)))?;
            vector("values", &values, n)
        })
    }
}

fn vector(argument: &str, object: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<f32>> {
    let numbers = input::<f32, Ix1>(argument, object, &[n])?;
    // SAFETY: the interpreter is kept until they are copied.
    copy(unsafe { numbers.as_slice() })
}

fn copy<T: Copy>(values: &[T]) -> PyResult<Vec<T>> {
    let mut copy = reserved(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

fn attached<R>(f: impl FnOnce(Python<'_>) -> PyResult<R>) -> PyResult<R> {
    Python::try_attach(f)
        .unwrap_or_else(|| Err(PyRuntimeError::new_err("the interpreter is shutting down")))
}
