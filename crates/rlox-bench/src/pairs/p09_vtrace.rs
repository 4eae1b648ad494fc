//! P9: two exponentials a step, or one.

use std::cell::RefCell;
use std::rc::Rc;

use rlox_core::Real;
use rlox_core::training::vtrace::{baseline, optimized};

use super::sequences::{Steps, narrow};
use crate::draw::{Draw, fixed_numbers};
use crate::pair::{Pair, Twin, Workload, arm, number};

pub(super) struct Vtrace;

fn run<T: Real>(
    twin: Twin,
    [log_rhos, rewards, values, dones]: [&[T]; 4],
    scalars: [f64; 4],
    (vs, advantages): (&mut [T], &mut [T]),
) {
    let [last_value, gamma, rho_bar, c_bar] = scalars.map(T::from_f64);
    let targets = match twin {
        Twin::Baseline => baseline::targets,
        Twin::Optimized => optimized::targets,
    };
    targets(
        log_rhos, rewards, values, dones, last_value, gamma, rho_bar, c_bar, vs, advantages,
    );
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
        run::<f64>(twin, columns, scalars, (vs, advantages));
        let [vs, advantages] = &mut single;
        run::<f32>(
            twin,
            narrow.each_ref().map(|column| &column[..]),
            scalars,
            (vs, advantages),
        );
        format!("{wide:?} {single:?}")
    }

    fn workloads(&self) -> &'static [Workload] {
        &[Workload {
            name: "vtrace",
            sizes: &[&[("n_steps", 128)], &[("n_steps", 10_000)]],
            prepare: |size| {
                let n = number(size, "n_steps");
                let inputs = Rc::new((Steps::fixed(n, 1), fixed_numbers(n, 4)));
                let out = Rc::new(RefCell::new((vec![0.0; n], vec![0.0; n])));
                Box::new(move |twin| {
                    let (inputs, out) = (Rc::clone(&inputs), Rc::clone(&out));
                    arm(move || {
                        let (steps, log_rhos) = &*inputs;
                        let columns = [&log_rhos[..], &steps.rewards, &steps.values, &steps.dones];
                        let (vs, advantages) = &mut *out.borrow_mut();
                        run(twin, columns, [0.5, 0.99, 1.0, 1.0], (vs, advantages));
                        (vs[0], advantages[0])
                    })
                })
            },
        }]
    }
}
