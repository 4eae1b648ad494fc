//! What is built on threads takes them, and what they share, from here: the standard library's, or
//! under `--cfg loom` what the tests that try every interleaving put in their place.

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub(crate) use model::{Arc, atomic, hint, mpsc, thread};
#[cfg(not(loom))]
pub(crate) use std::{
    hint,
    sync::{Arc, atomic, mpsc},
    thread,
};
