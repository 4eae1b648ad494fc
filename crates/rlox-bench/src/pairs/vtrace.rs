//! V-trace as its optimisations call it, and what they are timed at.

use std::cell::RefCell;
use std::rc::Rc;

use rlox_core::Real;

use super::sequences::Steps;
use crate::draw::fixed_numbers;
use crate::pair::{Contest, Size, Twin, arm, number};

/// A twin's function.
pub(super) type Targets<T> = fn(&[T], &[T], &[T], &[T], T, T, T, T, &mut [T], &mut [T]);

/// Calls it. Columns are log-ratios, rewards, values and dones; scalars the last value, gamma, and
/// the bars of rho and c.
pub(super) fn run<T: Real>(
    targets: Targets<T>,
    [log_rhos, rewards, values, dones]: [&[T]; 4],
    scalars: [f64; 4],
    (vs, advantages): (&mut [T], &mut [T]),
) {
    let [last_value, gamma, rho_bar, c_bar] = scalars.map(T::from_f64);
    targets(
        log_rhos, rewards, values, dones, last_value, gamma, rho_bar, c_bar, vs, advantages,
    );
}

pub(super) const SIZES: &[Size<'static>] = &[&[("n_steps", 128)], &[("n_steps", 10_000)]];

/// Of one sequence, into arrays that are kept.
pub(super) fn contest(size: Size<'_>, targets: fn(Twin) -> Targets<f64>) -> Contest {
    let n = number(size, "n_steps");
    let inputs = Rc::new((Steps::fixed(n, 1), fixed_numbers(n, 4)));
    let out = Rc::new(RefCell::new((vec![0.0; n], vec![0.0; n])));
    Box::new(move |twin| {
        let (inputs, out, targets) = (Rc::clone(&inputs), Rc::clone(&out), targets(twin));
        arm(move || {
            let (steps, log_rhos) = &*inputs;
            let columns = [&log_rhos[..], &steps.rewards, &steps.values, &steps.dones];
            let (vs, advantages) = &mut *out.borrow_mut();
            run(targets, columns, [0.5, 0.99, 1.0, 1.0], (vs, advantages));
            (vs[0], advantages[0])
        })
    })
}
