//! Infos of a step in which episodes ended, made when somebody first reads them: P28's optimised form.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rlox_core::env::stepping::Finals;

use crate::env::VecEnv;

type Of<'py> = Bound<'py, PyAny>;

/// The infos of a step for same-step autoreset: a dictionary that fills itself when one of its methods
/// is first called. A copy of it, and what a pickle holds, is a plain dictionary. Code in C that looks
/// into a dictionary without calling its methods, as `json.dumps` does, may find it empty until then;
/// `dict(infos)` is a plain one.
#[pyclass(module = "rlox._core", extends = PyDict, mapping, frozen)]
pub(crate) struct EndInfos {
    env: Py<VecEnv>,
    finals: Finals,
    filled: AtomicBool,
}

impl EndInfos {
    /// The infos of a step of `env` in which the episodes of `finals` ended.
    pub(crate) fn of<'py>(
        env: &Bound<'py, VecEnv>,
        finals: Finals,
    ) -> PyResult<Bound<'py, PyDict>> {
        let infos = Self {
            env: env.clone().unbind(),
            finals,
            filled: AtomicBool::new(false),
        };
        Ok(Bound::new(env.py(), infos)?.into_super())
    }

    /// The dictionary, filled. It may be given to functions of C's interface that take a dictionary.
    fn filled<'a, 'py>(slf: &'a Bound<'py, Self>) -> PyResult<&'a Bound<'py, PyDict>> {
        let (this, dict) = (slf.get(), slf.as_super());
        if !this.filled.load(Ordering::Relaxed) {
            let entries = this.env.get().end_infos(slf.py(), &this.finals)?;
            // Making them may have run a finaliser that has read this dictionary, and changed it.
            // Filling it runs none, since it is empty.
            if !this.filled.load(Ordering::Relaxed) {
                for (name, value) in entries {
                    dict.set_item(name, value)?;
                }
                this.filled.store(true, Ordering::Relaxed);
            }
        }
        Ok(dict)
    }

    /// Calls the method `name` of `dict` with the filled dictionary and `others`.
    fn call<'py, const N: usize>(
        slf: &Bound<'py, Self>,
        name: &str,
        others: [Of<'py>; N],
    ) -> PyResult<Of<'py>> {
        for other in &others {
            if let Ok(other) = other.cast() {
                Self::filled(other)?;
            }
        }
        let dict = Self::filled(slf)?.as_any().clone();
        let args = iter::once(dict).chain(others).collect::<Vec<_>>();
        let args = PyTuple::new(slf.py(), args)?;
        PyDict::type_object(slf.py()).call_method1(name, args)
    }
}

/// Whoever asks for a method by name has the dictionary filled (`__getattribute__`). The others are those
/// that Python's operators and functions call without asking for their name.
#[pymethods]
impl EndInfos {
    fn __getattribute__<'py>(slf: &Bound<'py, Self>, name: Of<'py>) -> PyResult<Of<'py>> {
        Self::call(slf, "__getattribute__", [name])
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Self::filled(slf)?.len())
    }

    fn __contains__<'py>(slf: &Bound<'py, Self>, key: Of<'py>) -> PyResult<bool> {
        Self::filled(slf)?.contains(key)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: Of<'py>) -> PyResult<Of<'py>> {
        // The usual way to read them, so without a call by name.
        match Self::filled(slf)?.get_item(&key)? {
            Some(value) => Ok(value),
            None => Err(PyKeyError::new_err((key.unbind(),))),
        }
    }

    fn __setitem__<'py>(slf: &Bound<'py, Self>, key: Of<'py>, value: Of<'py>) -> PyResult<()> {
        Self::filled(slf)?.set_item(key, value)
    }

    fn __delitem__<'py>(slf: &Bound<'py, Self>, key: Of<'py>) -> PyResult<()> {
        Self::call(slf, "__delitem__", [key]).map(drop)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Of<'py>> {
        Self::call(slf, "__iter__", [])
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Of<'py>> {
        Self::call(slf, "__reversed__", [])
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Of<'py>> {
        Self::call(slf, "__repr__", [])
    }

    fn __eq__<'py>(slf: &Bound<'py, Self>, other: Of<'py>) -> PyResult<Of<'py>> {
        Self::call(slf, "__eq__", [other])
    }

    fn __ne__<'py>(slf: &Bound<'py, Self>, other: Of<'py>) -> PyResult<Of<'py>> {
        Self::call(slf, "__ne__", [other])
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: Of<'py>) -> PyResult<Of<'py>> {
        Self::call(slf, "__or__", [other])
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: Of<'py>) -> PyResult<Of<'py>> {
        Self::call(slf, "__ror__", [other])
    }

    fn __ior__<'py>(slf: &Bound<'py, Self>, other: Of<'py>) -> PyResult<()> {
        Self::call(slf, "update", [other]).map(drop)
    }

    fn __reduce_ex__<'py>(
        slf: &Bound<'py, Self>,
        _protocol: Of<'py>,
    ) -> PyResult<(Of<'py>, (Bound<'py, PyDict>,))> {
        let plain = Self::filled(slf)?.copy()?;
        Ok((PyDict::type_object(slf.py()).into_any(), (plain,)))
    }
}
