//! Rayon's pool of threads, and whether it is still there. The only place to ask before work is shared.

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;

/// What a thread may take before it does anything, with much to spare: its stack, and what the C
/// library keeps for it. As much as `malloc` asks the system for, and never takes from its heap, where
/// no stack could lie.
const OF_A_THREAD: usize = 32 << 20;

/// Whether anybody was told of other threads, so that the pool may have been started.
static ASKED_FOR: AtomicBool = AtomicBool::new(false);
/// Whether the pool was started in the process that this one was forked from, or could not be.
static NO_POOL: AtomicBool = AtomicBool::new(false);
/// Whether it was tried.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Threads that can share work: 1 means that there is none but the caller.
pub(crate) fn threads() -> usize {
    if NO_POOL.load(Relaxed) {
        return 1;
    }
    ASKED_FOR.store(true, Relaxed);
    if !STARTED.load(Acquire) {
        start();
        if NO_POOL.load(Relaxed) {
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
        NO_POOL.store(true, Relaxed);
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

/// Of the time that a thread waits in vain for its helper, so much is worked without any. The loss
/// is then about a twentieth, however busy other programs keep the cores.
const ALONE_AFTER_LOSS: u32 = 20;

/// No more is held to be lost at once: a process that was stopped for an hour has not waited for its
/// helper.
const LONGEST_LOSS: Duration = Duration::from_millis(100);

/// When a helper is worth another try, in nanoseconds after [`began`].
static QUIET_AGAIN: AtomicU64 = AtomicU64::new(0);

fn began() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    *BEGAN.get_or_init(Instant::now)
}

/// Whether a second thread is worth a try: false for some time after it [cost](wasted) more than it
/// brought. All threads of the process learn from one another, since they have the same cores.
pub(crate) fn is_quiet() -> bool {
    let quiet_again = QUIET_AGAIN.load(Relaxed);
    quiet_again == 0 || began().elapsed() >= Duration::from_nanos(quiet_again)
}

/// To be called with what the help of a second thread has cost, or zero.
pub(crate) fn wasted(time: Duration) {
    if time > Duration::ZERO {
        let until = began().elapsed() + time.min(LONGEST_LOSS) * ALONE_AFTER_LOSS;
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        QUIET_AGAIN.fetch_max(nanos, Relaxed);
    }
}

/// To be called in a process that was forked off, before it does anything else.
///
/// A fork copies the pool, but none of its threads: to hand them work is to wait for ever. So who has
/// a copy does its work alone, with the same results; who was forked before there was a pool starts
/// its own.
pub fn forked() {
    if ASKED_FOR.load(Relaxed) {
        NO_POOL.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn after_a_loss_there_is_no_help_for_some_time_and_then_there_is() {
        wasted(Duration::from_millis(5));
        assert!(!is_quiet());
        let tries = Instant::now();
        while !is_quiet() {
            assert!(tries.elapsed() < Duration::from_secs(60)); // other tests lose, too
            sleep(Duration::from_millis(1));
        }
    }
}
