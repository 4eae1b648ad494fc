//! P9: two exponentials a step, or one.

use rlox_core::Real;
use rlox_core::training::vtrace::{baseline, optimized};

use super::sequences::{Steps, narrow};
use super::vtrace::{SIZES, Targets, contest, run};
use crate::draw::Draw;
use crate::pair::{Pair, Twin, Workload};

pub(super) struct Vtrace;

fn targets<T: Real>(twin: Twin) -> Targets<T> {
    match twin {
        Twin::Baseline => baseline::targets,
        Twin::Optimized => optimized::targets,
    }
}

impl Pair for Vtrace {
    fn id(&self) -> &'static str {
        "P9"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let n = case.below(20);
        let steps = Steps::draw(case, n, 1);
        let mut log_rhos = case.numbers(n);
        if n > 0 && case.once_in(4) {
            log_rhos[case.below(n)] = case.of(&[f64::NEG_INFINITY, 800.0]);
        }
        let bars = [0.0, 0.5, 1.0, f64::INFINITY];
        let scalars = [
            steps.last_values[0],
            case.unit(),
            case.of(&bars),
            case.of(&bars),
        ];
        let columns = [&log_rhos[..], &steps.rewards, &steps.values, &steps.dones];
        let narrow = columns.map(narrow);
        let (mut wide, mut single) = ([vec![9.0; n], vec![9.0; n]], [vec![9.0; n], vec![9.0; n]]);
        let [vs, advantages] = &mut wide;
        run::<f64>(targets(twin), columns, scalars, (vs, advantages));
        let [vs, advantages] = &mut single;
        run::<f32>(
            targets(twin),
            narrow.each_ref().map(|column| &column[..]),
            scalars,
            (vs, advantages),
        );
        format!("{wide:?} {single:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "vtrace",
            sizes: SIZES,
            prepare: |size| contest(size, targets),
        }]
    }
}
