//! The keys of results, made when the module is.
//!
//! PyO3's `intern!` makes each when it is first asked for, and lets go of the interpreter for it: a fork
//! by another thread just then would leave the child waiting for it for ever.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyString;

macro_rules! names {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// All of them.
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

/// The first call, in the making of the module, makes them.
#[inline]
pub(crate) fn names(py: Python<'_>) -> &'static Names {
    match NAMES.get() {
        Some(names) => names,
        None => NAMES.get_or_init(|| Names::new(py)),
    }
}
