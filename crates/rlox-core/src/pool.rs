//! Whether other threads can share work, how many, and how long one waits before it sleeps. Code that
//! uses Rayon's pool or starts a helper asks here first: there may be no pool after a fork, no memory for
//! threads, or no free core for them.

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

/// Bytes that a new thread takes before it does anything, with much to spare: its stack, and what the C
/// library keeps for it. At this size `malloc` asks the system for memory, as a stack does; less it
/// could take from its heap, where no stack can lie.
const OF_A_THREAD: usize = 32 << 20;

/// Whether [`threads`] was called, so that the pool may have been started.
static ASKED_FOR: AtomicBool = AtomicBool::new(false);
/// Whether there is no pool: starting it failed, or it was started in the process that this one was
/// forked from.
static NO_POOL: AtomicBool = AtomicBool::new(false);
/// Whether starting the pool was tried.
static STARTED: AtomicBool = AtomicBool::new(false);

/// The number of threads that can share work, the caller included; 1 if there is no pool.
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

/// Starts the pool. Rayon would start it by itself at its first use, and panic if the system cannot
/// start threads.
#[cold]
fn start() {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_by_one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if STARTED.load(Relaxed) {
        return;
    }
    let no_pool = !has_room_for(available_parallelism().map_or(1, usize::from)) || {
        // Only an error of the system has a source. The other error is that the pool was started
        // before.
        let built = ThreadPoolBuilder::new().build_global();
        built.is_err_and(|error| error.source().is_some())
    };
    if no_pool {
        NO_POOL.store(true, Relaxed);
    }
    STARTED.store(true, Release);
}

/// Whether there is memory for so many more threads. It is checked before a thread is started, since a
/// thread that starts and then finds no memory for its thread-local variables aborts the process.
pub(crate) fn has_room_for(threads: usize) -> bool {
    let mut room = Vec::<u8>::new();
    let there = room.try_reserve_exact(threads.saturating_mul(OF_A_THREAD));
    black_box(&room); // otherwise the compiler removes the allocation, which nobody uses
    there.is_ok()
}

/// After a helper has cost more than helpers saved before, no helper is tried for this many times as
/// long as the loss. So at most about a twentieth of the time is lost, however busy other programs keep
/// the cores.
const ALONE_AFTER_LOSS: u32 = 20;

/// At most so much counts as lost at once: a process that was stopped for an hour did not wait for its
/// helper so long.
const LARGEST_LOSS: Duration = Duration::from_millis(100);

/// At most so much of what helpers saved is set off against later losses. It outweighs the short
/// interruptions that the host of a virtual machine makes, but not the time slices of another program.
const MOST_SAVED: Duration = Duration::from_millis(1);

/// What helpers saved and no loss has used up, in nanoseconds.
static SAVED: AtomicU64 = AtomicU64::new(0);

/// When a helper may be tried again, in nanoseconds after [`began`].
static QUIET_AGAIN: AtomicU64 = AtomicU64::new(0);

/// The moment that times are counted from: an atomic number can hold a distance, not an `Instant`.
fn began() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    *BEGAN.get_or_init(Instant::now)
}

/// Whether a helper may be tried: false for some time after [`helped`] reported a loss. All threads of
/// the process share the answer, since they share the cores.
pub(crate) fn is_quiet() -> bool {
    let quiet_again = QUIET_AGAIN.load(Relaxed);
    quiet_again == 0 || began().elapsed() >= Duration::from_nanos(quiet_again)
}

/// Reports that work took so long with a helper, and how long it takes without one.
pub(crate) fn helped(took: Duration, alone: Duration) {
    let settle = |saved: u64| settled(Duration::from_nanos(saved), took, alone);
    let before = SAVED.fetch_update(Relaxed, Relaxed, |saved| Some(nanos(settle(saved).0)));
    let loss = settle(before.unwrap_or(0)).1;
    if loss > Duration::ZERO {
        let until = began().elapsed() + loss * ALONE_AFTER_LOSS;
        QUIET_AGAIN.fetch_max(nanos(until), Relaxed);
    }
}

/// What helpers saved and no loss has used up, after one more report, and the part of a loss that
/// exceeds it.
fn settled(saved: Duration, took: Duration, alone: Duration) -> (Duration, Duration) {
    let saved = (saved + alone.saturating_sub(took)).min(MOST_SAVED);
    let loss = took.saturating_sub(alone).min(LARGEST_LOSS);
    (saved.saturating_sub(loss), loss.saturating_sub(saved))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How long a waiting thread spins before it sleeps: about as long as it takes to wake a thread on a
/// virtual machine, and a small part of a scheduler's time slice.
pub(crate) const SPIN: Duration = Duration::from_micros(200);

/// The time that a waiting loop has spun.
#[derive(Default)]
pub(crate) struct Spinning {
    turns: u32,
    began: Option<Instant>,
}

impl Spinning {
    /// Whether to go on spinning: false after [`SPIN`]. The clock is read at every 64th turn only.
    pub(crate) fn goes_on(&mut self) -> bool {
        if cfg!(loom) {
            return false; // under loom a turn lets the other thread go on, so that none would ever sleep
        }
        self.turns += 1;
        !self.turns.is_multiple_of(64)
            || self.began.get_or_insert_with(Instant::now).elapsed() < SPIN
    }
}

/// Must be called in a forked process before anything else is.
///
/// A fork copies the pool's memory but none of its threads, so work handed to them would never be done.
/// A process with such a copy works alone, with the same results. A process that was forked before
/// there was a pool starts its own.
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
        helped(Duration::from_millis(5), Duration::ZERO);
        assert!(!is_quiet());
        let tries = Instant::now();
        while !is_quiet() {
            assert!(tries.elapsed() < Duration::from_secs(60)); // other tests waste time, too
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn losses_count_once_they_exceed_what_was_saved() {
        let [one, two, three] = [1, 2, 3].map(|n| Duration::from_micros(100 * n));
        let nothing = Duration::ZERO;
        assert_eq!(settled(nothing, one, three), (two, nothing));
        assert_eq!(settled(two, two, one), (one, nothing));
        assert_eq!(settled(one, three, one), (nothing, one));
        assert_eq!(settled(two, nothing, 2 * MOST_SAVED), (MOST_SAVED, nothing));
        assert_eq!(
            settled(nothing, 2 * LARGEST_LOSS, one),
            (nothing, LARGEST_LOSS)
        );
    }
}
