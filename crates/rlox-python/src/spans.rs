//! Records when each call into the extension began and ended, and in which thread. `rlox-opt profile`
//! switches it on, and takes what was recorded four times a second.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::crossing::{SITES, SPANS, Site, want};

/// The most calls that are kept (40 MiB), in case nobody takes them. Later ones are not recorded.
const MOST: usize = 1 << 20;

/// A call of a function of the binding, by the caller's clock.
struct Call {
    site: &'static str,
    thread: i64,
    begin_ns: i64,
    end_ns: i64,
}

/// What was recorded since it was last taken.
struct Notes {
    /// One moment by Rust's clock and by the caller's, in nanoseconds: it converts times of one to the
    /// other. None while recording is off.
    origin: Option<(Instant, i64)>,
    calls: Vec<Call>,
}

static NOTES: Mutex<Notes> = Mutex::new(Notes {
    origin: None,
    calls: Vec::new(),
});

/// How often recording was begun. A forked process begins again, and then asks for its threads' ids
/// anew, since those that were kept are the parent's.
static BEGUN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The value of `BEGUN` when this thread's id was asked for, and the kernel's id of the thread. The
    /// id is asked for again when `BEGUN` has changed.
    static THREAD: Cell<(u64, i64)> = const { Cell::new((0, 0)) };
}

/// Records a call that has ended. It is called with the GIL held, so that no other thread can fork
/// while the lock is held.
pub(crate) fn note(site: &Site, start: Instant, end: Instant) {
    let thread = thread_id();
    let mut notes = notes();
    let Some((moment, moment_ns)) = notes.origin else {
        return;
    };
    if notes.calls.len() < MOST {
        notes.calls.push(Call {
            site: site.name,
            thread,
            begin_ns: moment_ns + nanos_from(moment, start),
            end_ns: moment_ns + nanos_from(moment, end),
        });
    }
}

/// Records every call from now on, by the clock that shows `monotonic_ns` now, in nanoseconds. None
/// ends recording.
#[pyfunction]
#[pyo3(signature = (monotonic_ns))]
pub fn record_spans(monotonic_ns: Option<i64>) {
    BEGUN.fetch_add(1, Relaxed);
    let mut notes = notes();
    notes.origin = monotonic_ns.map(|ns| (Instant::now(), ns));
    notes.calls.clear();
    want(SPANS, monotonic_ns.is_some());
}

/// Returns the calls since it was last called, as `(names, threads)`.
///
/// `names` are the names of all functions. `threads` has for each thread its id in the kernel and the
/// bytes of its calls, three int64 in the machine's byte order for each: the index of the function's
/// name, and when the call began and ended, in nanoseconds of the caller's clock.
#[pyfunction]
pub fn take_spans(py: Python<'_>) -> (Vec<&'static str>, Vec<(i64, Bound<'_, PyBytes>)>) {
    let calls = std::mem::take(&mut notes().calls);
    let names: Vec<&'static str> = SITES.iter().map(|site| site.name).collect();
    let numbers: HashMap<&str, i64> = names.iter().copied().zip(0..).collect();
    let mut threads: HashMap<i64, Vec<u8>> = HashMap::new();
    for call in &calls {
        let data = threads.entry(call.thread).or_default();
        let number = numbers.get(call.site).copied().unwrap_or_default();
        for word in [number, call.begin_ns, call.end_ns] {
            data.extend_from_slice(&word.to_ne_bytes());
        }
    }
    let threads = threads
        .into_iter()
        .map(|(thread, data)| (thread, PyBytes::new(py, &data)))
        .collect();
    (names, threads)
}

fn notes() -> MutexGuard<'static, Notes> {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds from `from` to `to`, negative if `to` is earlier.
fn nanos_from(from: Instant, to: Instant) -> i64 {
    match to.checked_duration_since(from) {
        Some(after) => after.as_nanos() as i64,
        None => -((from - to).as_nanos() as i64),
    }
}

/// The kernel's id of the calling thread; 0 on systems without /proc.
fn thread_id() -> i64 {
    let begun = BEGUN.load(Relaxed);
    THREAD.with(|cached| {
        let (when, id) = cached.get();
        if when == begun {
            return id;
        }
        let id = fs::read_link("/proc/thread-self")
            .ok()
            .and_then(|link| link.file_name()?.to_str()?.parse().ok())
            .unwrap_or_default();
        cached.set((begun, id));
        id
    })
}
