//! A policy's actions for environments that run in Python.
#![allow(
    unsafe_code,
    reason = "arrays are read where they lie, which is sound while the interpreter is kept"
)]

use numpy::{Ix1, Ix2};
use pyo3::prelude::*;
use rlox_core::nn::{Acting as CoreActing, Drawn, PackedMlp};

use crate::arrays::{Results, any_shape, input};
use crate::crossing::ACTING_DRAW;
use crate::errors::to_py;
use crate::lock::Lock;
use crate::nn::mlp;
use crate::numbers::List;

/// Widths (input, hidden…, output), "tanh" or "relu", parameters.
type Network<'py> = (List<usize>, String, Bound<'py, PyAny>);

/// Draws a policy's actions for batches of observations, with the weights that it has now.
///
/// `actor` is ``(widths, activation, params)`` as `collect_rollout` takes it. Its outputs are the means
/// of normals with deviations exp(`log_std`), float32 `[act_dim]`; or without a `log_std` logits of one
/// choice, or of several with `nvec` possibilities.
///
/// Raises ValueError for a network, a length or a number of possibilities that does not fit, TypeError
/// for another dtype, MemoryError.
#[pyclass(module = "rlox._core", frozen)]
pub(crate) struct Acting {
    inner: Lock<CoreActing>,
    obs_dim: usize,
    n_noise: usize,
    n_choices: Option<usize>,
    /// Whether there is one choice, whose actions have one axis.
    alone: bool,
}

#[pymethods]
impl Acting {
    #[new]
    #[pyo3(signature = (actor, log_std=None, nvec=None))]
    fn new(
        actor: Network<'_>,
        log_std: Option<&Bound<'_, PyAny>>,
        nvec: Option<List<usize>>,
    ) -> PyResult<Self> {
        let shape = mlp("actor", &actor.0.0, &actor.1)?;
        let n_outputs = shape.n_outputs();
        let params = input::<f32, Ix1>("actor", &actor.2, &[shape.n_params()])?;
        let log_std = log_std
            .map(|log_std| input::<f32, Ix1>("log_std", log_std, &[n_outputs]))
            .transpose()?;
        // SAFETY: the interpreter is kept until they are copied.
        let acting = unsafe {
            let packed = PackedMlp::new(shape, params.as_slice()).map_err(to_py)?;
            match (&log_std, &nvec) {
                (Some(log_std), _) => CoreActing::gaussian(packed, log_std.as_slice()),
                (None, Some(List(nvec))) => CoreActing::choosing(packed, nvec),
                (None, None) => CoreActing::choosing(packed, &[n_outputs]),
            }
        };
        let acting = acting.map_err(to_py)?;
        Ok(Self {
            obs_dim: acting.obs_dim(),
            n_noise: acting.n_noise(),
            n_choices: acting.n_choices(),
            alone: nvec.is_none(),
            inner: Lock::new(acting),
        })
    }

    /// Actions for `obs`, `[n, obs_dim]` float32: float32 `[n, act_dim]`, or int64 `[n]`, with `nvec`
    /// `[n, choices]`. `noise`, float32, has a number for each of the actor's outputs, `[n, outputs]`:
    /// standard normals, or for choices exponential numbers, of which the one that is soonest at its
    /// logit's rate is taken.
    fn draw<'py>(
        &self,
        py: Python<'py>,
        obs: &Bound<'py, PyAny>,
        noise: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = ACTING_DRAW.enter(0);
        let n = any_shape::<f32, Ix2>("obs", obs)?.shape()[0];
        crossing.add_bytes(n * (self.obs_dim + self.n_noise) * size_of::<f32>());
        let Some(choices) = self.n_choices else {
            let mut to = Results::<f32, Ix2>::new(py, "", None, [n, self.n_noise], &[])?;
            // SAFETY: nobody else has the new array.
            self.fill(
                py,
                n,
                obs,
                noise,
                Drawn::Continuous(unsafe { to.as_mut_slice() }),
            )?;
            return Ok(to.into_any());
        };
        if self.alone {
            let mut to = Results::<i64, Ix1>::new(py, "", None, [n], &[])?;
            // SAFETY: the same.
            self.fill(
                py,
                n,
                obs,
                noise,
                Drawn::Chosen(unsafe { to.as_mut_slice() }),
            )?;
            return Ok(to.into_any());
        }
        let mut to = Results::<i64, Ix2>::new(py, "", None, [n, choices], &[])?;
        // SAFETY: the same.
        self.fill(
            py,
            n,
            obs,
            noise,
            Drawn::Chosen(unsafe { to.as_mut_slice() }),
        )?;
        Ok(to.into_any())
    }
}

impl Acting {
    fn fill<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        obs: &Bound<'py, PyAny>,
        noise: &Bound<'py, PyAny>,
        to: Drawn<'_>,
    ) -> PyResult<()> {
        // Before the arrays are looked at: who waits lets go of the interpreter.
        let mut acting = self.inner.lock(py)?;
        let obs = input::<f32, Ix2>("obs", obs, &[n, self.obs_dim])?;
        let noise = input::<f32, Ix2>("noise", noise, &[n, self.n_noise])?;
        // SAFETY: the interpreter is kept from here on.
        let drawn = unsafe { acting.draw(obs.as_slice(), noise.as_slice(), to) };
        drawn.map_err(to_py)
    }
}
