//! The two threads of an update, which are two of Rayon's pool. They wait for each other several times in
//! an update of a few milliseconds. So whichever waits spins first: waking a sleeping thread takes some
//! tens of microseconds each time.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rayon::Yield;

use crate::nn::FlushDenormals;
use crate::pool::Spinning;

/// Runs `update` in Rayon's pool, where each `join` costs less than from outside of it, and meanwhile
/// keeps a second thread of the pool awake.
pub(super) fn in_pool<T: Send>(update: impl FnOnce() -> T + Send) -> T {
    let ended = AtomicBool::new(false);
    rayon::scope(|scope| {
        scope.spawn(|_| stay_awake(&ended));
        let result = update();
        ended.store(true, Relaxed);
        result
    })
}

/// Does the pool's work until the update has ended, or there was none for too long to spin.
fn stay_awake(ended: &AtomicBool) {
    let mut spinning = Spinning::default();
    while !ended.load(Relaxed) && spinning.goes_on() {
        match rayon::yield_now() {
            Some(Yield::Executed) => spinning = Spinning::default(),
            _ => hint::spin_loop(),
        }
    }
}

/// Runs `a` and `b`, on two threads if asked to, with denormals as zero. The guard is made and dropped
/// within each, since Rayon may run other work on a thread that waits.
pub(super) fn both(two_threads: bool, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
    fn flushed(work: impl FnOnce()) {
        let _flush = FlushDenormals::new();
        work();
    }
    if !two_threads {
        flushed(a);
        flushed(b);
        return;
    }
    let b_runs = AtomicBool::new(false);
    rayon::join(
        || {
            flushed(a);
            // Once this closure ends, Rayon puts the thread to sleep until `b` has ended.
            let mut spinning = Spinning::default();
            while b_runs.load(Relaxed) && spinning.goes_on() {
                hint::spin_loop();
            }
        },
        || {
            b_runs.store(true, Relaxed);
            flushed(b);
            b_runs.store(false, Relaxed);
        },
    );
}
