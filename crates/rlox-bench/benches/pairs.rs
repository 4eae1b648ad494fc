//! Every pair of the core, both twins at every size. P11 needs an interpreter, P6 two builds: they are
//! timed by `rlox-opt cmp` alone.
//!
//! Criterion times one twin after the other, which a noisy machine can tell apart without reason;
//! `rlox-opt cmp` interleaves them.

#![allow(missing_docs, clippy::panic)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rlox_bench::pair::{Twin, same};
use rlox_bench::pairs::PAIRS;

fn pairs(c: &mut Criterion) {
    for pair in PAIRS {
        for workload in pair.workloads() {
            let mut group = c.benchmark_group(format!("{}/{}", pair.id(), workload.name));
            for size in workload.sizes {
                let contest = (workload.prepare)(size);
                let [mut baseline, mut optimized] = [Twin::Baseline, Twin::Optimized].map(&contest);
                baseline.call();
                optimized.call();
                if let Err(difference) =
                    same(&baseline.outcome(), &optimized.outcome(), pair.tolerance())
                {
                    panic!("{}: {difference}", pair.id());
                }
                let numbers: Vec<_> = size.iter().map(|(_, number)| number.to_string()).collect();
                let numbers = numbers.join("x");
                for (name, arm) in [("baseline", &mut baseline), ("optimized", &mut optimized)] {
                    let id = BenchmarkId::new(name, &numbers);
                    group.bench_function(id, |b| b.iter(|| arm.call()));
                }
            }
            group.finish();
        }
    }
}

criterion_group!(benches, pairs);
criterion_main!(benches);
