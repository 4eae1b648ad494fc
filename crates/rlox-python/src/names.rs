//! The keys of results, as Python strings that are made once, at import.
//!
//! PyO3's `intern!` would make each string at its first use, and release the GIL for that. If another
//! thread forked just then, the child would wait for ever for the string's initialisation.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyString;

macro_rules! names {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// All keys.
        pub(crate) struct Names {
            $(pub(crate) $name: Py<PyString>,)*
        }

        impl Names {
            fn new(py: Python<'_>) -> Self {
                Self { $($name: PyString::intern(py, $text).unbind(),)* }
            }
        }
    };
}

names! {
    obs = "obs",
    next_obs = "next_obs",
    action = "action",
    reward = "reward",
    terminated = "terminated",
    truncated = "truncated",
    weights = "weights",
    indices = "indices",
    final_obs = "final_obs",
    has_final_obs = "_final_obs",
    final_info = "final_info",
    has_final_info = "_final_info",
}

static NAMES: OnceLock<Names> = OnceLock::new();

/// The keys. The first call makes them, at import.
#[inline]
pub(crate) fn names(py: Python<'_>) -> &'static Names {
    match NAMES.get() {
        Some(names) => names,
        None => NAMES.get_or_init(|| Names::new(py)),
    }
}
