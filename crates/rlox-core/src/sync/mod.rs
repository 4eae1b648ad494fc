//! Threads, atomics and channels for the core: those of the standard library, or with `--cfg loom` those of
//! loom, whose tests try every order in which threads can run. Code that uses threads imports them from
//! here, so that the tests run that very code.

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub(crate) use model::{Arc, Mutex, MutexGuard, PoisonError, atomic, hint, mpsc, thread};
#[cfg(not(loom))]
pub(crate) use std::{
    hint,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic, mpsc},
    thread,
};
