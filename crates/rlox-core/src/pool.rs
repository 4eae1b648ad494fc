//! Rayon's pool of threads, and whether it is still there. The only place to ask before work is shared.

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use rayon::ThreadPoolBuilder;

/// What a thread may take before it does anything, with much to spare: its stack, and what the C
/// library keeps for it. As much as `malloc` asks the system for, and never takes from its heap, where
/// no stack could lie.
const OF_A_THREAD: usize = 32 << 20;

/// Whether anybody was told of other threads, so that the pool may have been started.
static ASKED_FOR: AtomicBool = AtomicBool::new(false);
/// Whether the pool was started in the process that this one was forked from, or could not be.
static LOST: AtomicBool = AtomicBool::new(false);
/// Whether it was tried.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Threads that can share work: 1 means that there is none but the caller.
pub(crate) fn threads() -> usize {
    if LOST.load(Relaxed) {
        return 1;
    }
    ASKED_FOR.store(true, Relaxed);
    if !STARTED.load(Acquire) {
        start();
        if LOST.load(Relaxed) {
            return 1;
        }
    }
    rayon::current_num_threads()
}

/// Starts the pool. Rayon would do it when first asked, and panic where the system has no threads to
/// give.
#[cold]
fn start() {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_by_one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if STARTED.load(Relaxed) {
        return;
    }
    let lost = !has_room_for(available_parallelism().map_or(1, usize::from)) || {
        // Of the errors only the system's have a source; another one is that it was started before.
        let built = ThreadPoolBuilder::new().build_global();
        built.is_err_and(|error| error.source().is_some())
    };
    if lost {
        LOST.store(true, Relaxed);
    }
    STARTED.store(true, Release);
}

/// Whether there is memory for so many threads more. Asked before any is started: a thread that
/// starts, and then finds none for its own variables, ends the process.
pub(crate) fn has_room_for(threads: usize) -> bool {
    let mut room = Vec::<u8>::new();
    let there = room.try_reserve_exact(threads.saturating_mul(OF_A_THREAD));
    black_box(&room); // or the compiler leaves out what nobody uses
    there.is_ok()
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
