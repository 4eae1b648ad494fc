//! P22: leaves of a sum tree found one after the other, or sixteen side by side.

use std::fmt::Write;
use std::rc::Rc;

use rlox_core::buffer::descent::{baseline, optimized};
use rlox_core::buffer::sum_tree::SumTree;
use rlox_core::wiring::Shipped;

use crate::draw::{Draw, fixed_numbers, unit_of};
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Descent;

fn find_all(twin: Twin, tree: &SumTree, prefixes: &[f64], rows: &mut Vec<usize>) {
    match twin {
        Twin::Baseline => baseline::find_all(tree, prefixes, rows),
        Twin::Optimized => optimized::find_all(tree, prefixes, rows),
    }
}

impl Pair for Descent {
    fn id(&self) -> &'static str {
        "P22"
    }

    /// Leaves of zero among them; prefixes on the borders of intervals, and beyond the last one.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let (mut written, mut rows) = (String::new(), Vec::new());
        let capacity = 1 + case.below(40);
        let Ok(mut tree) = SumTree::new::<Shipped>(capacity) else {
            return written;
        };
        for _ in 0..1 + case.below(8) {
            for _ in 0..1 + case.below(30) {
                let leaf = case.of(&[0.0, 0.25, 1.0, 1.0, 3.0, 1e-9]);
                tree.set(case.below(capacity), leaf);
            }
            let prefixes: Vec<f64> = (0..case.below(40))
                .map(|_| case.unit() * tree.total() * case.of(&[1.0, 1.0, 1.5]))
                .collect();
            find_all(twin, &tree, &prefixes, &mut rows);
            let _ = writeln!(written, "{rows:?}");
        }
        written
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "find_256",
            sizes: &[
                &[("n", 1_000)],
                &[("n", 10_000)],
                &[("n", 100_000)],
                &[("n", 1_000_000)],
            ],
            prepare: |size| {
                let n = number(size, "n");
                let tree = SumTree::new::<Shipped>(n).ok().map(|mut tree| {
                    for (row, x) in fixed_numbers(n, 5).iter().enumerate() {
                        tree.set(row, 1e-3 + x.abs());
                    }
                    tree
                });
                let tree = Rc::new(tree);
                Box::new(move |twin| {
                    let tree = Rc::clone(&tree);
                    let (mut call, mut prefixes, mut rows) = (0, Vec::new(), Vec::new());
                    arm(move || {
                        let tree = (*tree).as_ref()?;
                        let stratum = tree.total() / 256.0;
                        // Rows never seen before, as in a sample: a predictor of branches learns
                        // even a thousand of them by heart.
                        call += 1;
                        prefixes.clear();
                        prefixes.extend((0..256).map(|i| (i as f64 + unit_of(call, i)) * stratum));
                        find_all(twin, tree, &prefixes, &mut rows);
                        rows.last().copied()
                    })
                })
            },
        }]
    }
}
