//! What a call costs besides time: `count P5 sample_256 optimized 100 n=1000` prints the
//! allocations and the bytes allocated per call, as JSON. Under callgrind with
//! `--toggle-collect='*measured*'` the same run counts the instructions of its calls.
//!
//! All threads' work is done by this one, so that nothing is counted elsewhere.

#![allow(unsafe_code, reason = "an allocator can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rlox_bench::pair::{Arm, Twin};
use rlox_bench::pairs::PAIRS;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

impl Counting {
    fn note(bytes: usize) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: every call is the system allocator's, with the caller's own arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::note(new_size);
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "usage: count ID WORKLOAD baseline|optimized CALLS NAME=NUMBER…";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((mut arm, calls)) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // A batch that is kept, a map that grows: the first calls are not like the others.
    (0..3).for_each(|_| arm.call());
    let (allocations, bytes) = measured(&mut *arm, calls);
    println!(
        "{{\"calls\": {calls}, \"allocations\": {}, \"bytes\": {}}}",
        allocations as f64 / calls as f64,
        bytes as f64 / calls as f64
    );
    ExitCode::SUCCESS
}

fn parse(arguments: &[String]) -> Option<(Box<dyn Arm>, usize)> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.use_current_thread().build_global().ok()?;
    let [id, workload, twin, calls, size @ ..] = arguments else {
        return None;
    };
    let size: Vec<(&str, usize)> = size
        .iter()
        .map(|number| {
            let (name, value) = number.split_once('=')?;
            Some((name, value.parse().ok()?))
        })
        .collect::<Option<_>>()?;
    let twin = match twin.as_str() {
        "baseline" => Twin::Baseline,
        "optimized" => Twin::Optimized,
        _ => return None,
    };
    let pair = PAIRS.iter().find(|pair| pair.id() == id)?;
    let workload = pair.workloads().iter().find(|w| w.name == workload)?;
    Some(((workload.prepare)(&size)(twin), calls.parse().ok()?))
}

/// Allocations and bytes of `calls` calls.
#[inline(never)]
fn measured(arm: &mut dyn Arm, calls: usize) -> (u64, u64) {
    let before = (ALLOCATIONS.load(Relaxed), BYTES.load(Relaxed));
    for _ in 0..calls {
        arm.call();
    }
    (
        ALLOCATIONS.load(Relaxed) - before.0,
        BYTES.load(Relaxed) - before.1,
    )
}
