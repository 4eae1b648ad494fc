//! P18: a sequence through V-trace step by step, or in blocks.

use rlox_core::Real;
use rlox_core::training::vtrace::blocks::{baseline, optimized};
use rlox_core::wiring::Shipped;

use super::sequences::{Steps, marked, narrow};
use super::vtrace::{SIZES, Targets, contest, run};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload};

pub(super) struct VtraceBlocks;

fn targets<T: Real>(twin: Twin) -> Targets<T> {
    match twin {
        Twin::Baseline => baseline::targets::<Shipped, T>,
        Twin::Optimized => optimized::targets::<Shipped, T>,
    }
}

/// Without a bar, weights shrink but for a run whose product overflows (45 in f32, 400 in f64, too):
/// after it there is nothing to correct, so that the targets are finite.
fn unbarred(case: &mut Draw<'_>, steps: &mut Steps, log_rhos: &mut [f64]) {
    for log_rho in &mut *log_rhos {
        *log_rho = -log_rho.abs();
    }
    let (from, high) = (case.below(log_rhos.len()), case.of(&[45.0, 400.0]));
    for (i, log_rho) in log_rhos[from..].iter_mut().enumerate() {
        if i < 4 {
            *log_rho = high;
        }
        (steps.rewards[from + i], steps.values[from + i]) = (0.0, 0.0);
    }
    steps.last_values[0] = 0.0;
}

impl Pair for VtraceBlocks {
    fn id(&self) -> &'static str {
        "P18"
    }

    fn tolerance(&self) -> f64 {
        1e-12
    }

    /// A few steps, or more than a block of them; what is not finite has to show in the first target.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let n = match case.below(4) {
            3 => 254 + case.below(5),
            _ => case.below(20),
        };
        let mut steps = Steps::draw(case, n, 1);
        let mut log_rhos = case.numbers(n);
        if n > 0 && case.once_in(4) {
            log_rhos[case.below(n)] = case.of(&[f64::NEG_INFINITY, 800.0]);
        }
        let [gamma, rho_bar] = [case.unit(), case.of(&[0.0, 0.5, 1.0, f64::INFINITY])];
        let c_bar = case.of(&[0.0, 0.5, 1.0, f64::INFINITY]);
        if n > 0 && c_bar == f64::INFINITY {
            unbarred(case, &mut steps, &mut log_rhos);
        }
        let scalars = [steps.last_values[0], gamma, rho_bar, c_bar];
        let columns = [&log_rhos[..], &steps.rewards, &steps.values, &steps.dones];
        let (mut vs, mut advantages) = (vec![9.0; n], vec![9.0; n]);
        run::<f64>(targets(twin), columns, scalars, (&mut vs, &mut advantages));
        if vs.first().is_some_and(|first| !first.is_finite()) {
            return "not finite".into();
        }
        let columns = columns.map(narrow);
        let columns = columns.each_ref().map(|column| &column[..]);
        let (mut single, mut single_advantages) = (vec![9.0; n], vec![9.0; n]);
        run::<f32>(
            targets(twin),
            columns,
            scalars,
            (&mut single, &mut single_advantages),
        );
        let [single, single_advantages] = [single, single_advantages].map(|x| marked(&x));
        format!("{vs:?} {advantages:?} {single:?} {single_advantages:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "vtrace",
            sizes: SIZES,
            prepare: |size| contest(size, targets),
        }]
    }
}
