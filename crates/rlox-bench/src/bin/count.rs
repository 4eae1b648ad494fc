//! What a call costs besides time: `count P5 sample_256 optimized 100 n=1000` prints the
//! allocations and the bytes allocated per call, as JSON. Under callgrind with
//! `--toggle-collect='*measured*'` the same run counts the instructions of its calls.
//!
//! All threads' work is done by this one, so that nothing is counted elsewhere.

use std::process::ExitCode;

use rlox_bench::counting::Counting;
use rlox_bench::pair::{Arm, Twin};
use rlox_bench::pairs::PAIRS;

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
    let before = Counting::so_far();
    for _ in 0..calls {
        arm.call();
    }
    let after = Counting::so_far();
    (after.0 - before.0, after.1 - before.1)
}
