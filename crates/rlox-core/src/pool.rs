//! Rayon's pool of threads, and whether it is still there. The only place to ask before work is shared.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether anybody was told of other threads, so that the pool may have been started.
static ASKED_FOR: AtomicBool = AtomicBool::new(false);
/// Whether the pool was started in the process that this one was forked from.
static LOST: AtomicBool = AtomicBool::new(false);

/// Threads that can share work: 1 means that there is none but the caller.
pub(crate) fn threads() -> usize {
    if LOST.load(Relaxed) {
        return 1;
    }
    ASKED_FOR.store(true, Relaxed);
    rayon::current_num_threads()
}

/// To be called in a process that was forked off, before it does anything else.
///
/// A fork copies the pool, but none of its threads: to hand them work is to wait for ever. So who has
/// a copy does its work alone, with the same results; who was forked before there was a pool starts
/// its own.
pub fn forked() {
    if ASKED_FOR.load(Relaxed) {
        LOST.store(true, Relaxed);
    }
}
