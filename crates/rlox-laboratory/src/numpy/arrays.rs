//! The pairs P20 and P23: how samples get into arrays, and how a call guards the arrays that it reads.

use std::rc::Rc;

use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use rlox_bench::draw::{Draw, fixed_numbers};
use rlox_bench::pair::{Contest, Pair, Twin, Workload, arm, number};
use rlox_bench::pairs::rows_for;
use rlox_binding::seams::{Borrows, ByBatch, Held, IntoArrays, Released, push, push_batch};
use rlox_core::buffer::intake;
use rlox_core::wiring::Shipped;

use super::{Ring, SITE, TransitionArrays, fresh, ring, sampled, sampling, script};

pub(super) struct SampleArrays;
pub(super) struct HeldArrays;

impl Pair for SampleArrays {
    fn id(&self) -> &'static str {
        "P20"
    }

    /// Samples into new arrays or into kept ones. The baseline copies its batch into kept arrays.
    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let memory = fresh();
        let source = memory.source(case.once_in(2));
        match twin {
            Twin::Baseline => sampled::<Shipped, Released, ByBatch>(source, case),
            Twin::Optimized => sampled::<Shipped, Released, IntoArrays>(source, case),
        }
    }

    /// The baseline always makes new arrays. The optimised form fills kept arrays in the first
    /// workload, new ones in the second.
    fn workloads(&self) -> &'static [Workload] {
        const SIZES: &[&[(&str, usize)]] = &[
            &[("batch_size", 32), ("obs_dim", 4)],
            &[("batch_size", 256), ("obs_dim", 4)],
            &[("batch_size", 1_024), ("obs_dim", 4)],
            &[("batch_size", 256), ("obs_dim", 28_224)],
        ];
        fn contest(size: &[(&str, usize)], keep: bool) -> Contest {
            let (n, obs_dim) = (number(size, "batch_size"), number(size, "obs_dim"));
            Box::new(move |twin| match twin {
                Twin::Baseline => sampling::<Shipped, Released, ByBatch>(obs_dim, n, fresh(), true),
                Twin::Optimized => {
                    sampling::<Shipped, Released, IntoArrays>(obs_dim, n, fresh(), !keep)
                }
            })
        }
        &[
            Workload {
                name: "sample_kept_numpy",
                sizes: SIZES,
                prepare: |size| contest(size, true),
            },
            Workload {
                name: "sample_fresh_numpy",
                sizes: SIZES,
                prepare: |size| contest(size, false),
            },
        ]
    }
}

impl Pair for HeldArrays {
    fn id(&self) -> &'static str {
        "P23"
    }

    fn outcome(&self, twin: Twin, case: &mut Draw<'_>) -> String {
        let push = |arrays: &TransitionArrays, ring: &Ring<_>, x| push_held(arrays, twin, ring, x);
        script::<Shipped, Held, ByBatch>(push, fresh().source(true), case)
    }

    fn workloads(&self) -> &'static [Workload] {
        &[
            Workload {
                name: "push_numpy",
                sizes: &[&[("obs_dim", 4)], &[("obs_dim", 28_224)]],
                prepare: |size| {
                    let obs_dim = number(size, "obs_dim");
                    let arrays =
                        Rc::new(TransitionArrays::new(fixed_numbers(obs_dim, 1), vec![0.5]));
                    Box::new(move |twin| {
                        let arrays = Rc::clone(&arrays);
                        let ring = ring::<Shipped>(rows_for(obs_dim), obs_dim, 1);
                        arm(move || push_held(&arrays, twin, ring.as_ref()?, 1.0).ok())
                    })
                },
            },
            Workload {
                name: "push_batch_numpy",
                sizes: &[&[("n", 8)], &[("n", 64)]],
                prepare: |size| {
                    let columns = Rc::new(columns(number(size, "n")));
                    Box::new(move |twin| {
                        let columns = Rc::clone(&columns);
                        let ring = ring::<Shipped>(rows_for(4), 4, 1);
                        arm(move || {
                            Python::attach(|py| {
                                let columns = columns.each_ref().map(|column| column.bind(py));
                                let (ring, site) = (ring.as_ref()?, &SITE);
                                push_batch(ring, site, borrows(twin), columns).ok()
                            })
                        })
                    })
                },
            },
        ]
    }
}

fn borrows(twin: Twin) -> Borrows {
    match twin {
        Twin::Baseline => Borrows::Counted,
        Twin::Optimized => Borrows::Trusted,
    }
}

fn push_held(
    arrays: &TransitionArrays,
    twin: Twin,
    ring: &Ring<Shipped>,
    reward: f32,
) -> PyResult<()> {
    arrays.with(reward, |one| {
        push(ring, &SITE, one, borrows(twin), intake::optimized::push)
    })
}

/// The columns of `n` transitions with observations of four values.
fn columns(n: usize) -> [Py<PyAny>; 6] {
    Python::attach(|py| {
        let obs = PyArray2::<f32>::zeros(py, [n, 4], false)
            .into_any()
            .unbind();
        let flags = PyArray1::<bool>::zeros(py, [n], false).into_any().unbind();
        [
            obs.clone_ref(py),
            obs,
            PyArray2::<f32>::zeros(py, [n, 1], false)
                .into_any()
                .unbind(),
            PyArray1::<f32>::zeros(py, [n], false).into_any().unbind(),
            flags.clone_ref(py),
            flags,
        ]
    })
}
