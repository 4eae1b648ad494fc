//! `ActionSampler`: draws a policy's actions in Rust for environments that run in Python.

use numpy::{Ix1, Ix2};
use pyo3::prelude::*;
use rlox_core::nn::{ActionSampler as CoreSampler, ActionsOut, PackedMlp};

use crate::arrays::{Argument, BORROWS, Looks, Output, Unguarded, reading, shape_of, writing};
use crate::crossing::SAMPLER_DRAW;
use crate::errors::to_py;
use crate::lock::Lock;
use crate::nn::{NetworkWithParams, mlp, only_one_kind};
use crate::numbers::List;

/// Draws a policy's actions for batches of observations, with a copy of the actor's present weights.
///
/// `actor` is ``(widths, activation, params)`` as `collect_rollout` takes it. What its outputs are
/// depends on the other arguments: with `log_std`, float32 `[act_dim]`, the means of independent
/// normals with the standard deviations exp(`log_std`); with `nvec` the logits of several categoricals
/// with these numbers of categories; with `bits` the logits of independent bits; otherwise the logits
/// of one categorical.
///
/// Raises ValueError for a network, a length or a number of categories that does not fit and for
/// arguments that exclude each other, TypeError for another dtype, MemoryError.
#[pyclass(module = "rlox._core", frozen)]
pub struct ActionSampler {
    inner: Lock<CoreSampler>,
    obs_dim: usize,
    n_noise: usize,
    n_choices: Option<usize>,
    /// Whether actions are `[n]`, of one categorical, and not `[n, choices]`.
    single: bool,
}

#[pymethods]
impl ActionSampler {
    #[new]
    #[pyo3(signature = (actor, log_std=None, nvec=None, bits=false))]
    fn new(
        py: Python<'_>,
        actor: NetworkWithParams<'_>,
        log_std: Option<&Bound<'_, PyAny>>,
        nvec: Option<List<usize>>,
        bits: bool,
    ) -> PyResult<Self> {
        only_one_kind(&nvec, log_std.is_some(), bits)?;
        let shape = mlp("actor", &actor.0.0, &actor.1)?;
        let n_outputs = shape.n_outputs();
        let params = Argument::new("actor", &actor.2);
        let log_std = log_std.map(|log_std| Argument::new("log_std", log_std));
        let acting = reading(py, &Unguarded, BORROWS, |(), look| {
            let params = look.read::<f32, Ix1>(params, Some(&[shape.n_params()]))?;
            let packed = PackedMlp::new(shape, &params).map_err(to_py)?;
            let acting = match (log_std, &nvec) {
                (Some(log_std), _) => {
                    let log_std = look.read::<f32, Ix1>(log_std, Some(&[n_outputs]))?;
                    CoreSampler::gaussian(packed, &log_std)
                }
                (None, _) if bits => CoreSampler::bits(packed),
                (None, Some(List(nvec))) => CoreSampler::choosing(packed, nvec),
                (None, None) => CoreSampler::choosing(packed, &[n_outputs]),
            };
            acting.map_err(to_py)
        })?;
        Ok(Self {
            obs_dim: acting.obs_dim(),
            n_noise: acting.n_noise(),
            n_choices: acting.n_choices(),
            single: nvec.is_none(),
            inner: Lock::new(acting),
        })
    }

    /// Draws an action for each row of `obs`, `[n, obs_dim]` float32.
    ///
    /// `noise`, float32 `[n, outputs]`, has a random number for each of the actor's outputs. Normal
    /// actions take standard normals. Categoricals take exponential numbers, and the category with the
    /// least noise / exp(logit) is chosen, which draws from the softmax of the logits. Bits take
    /// numbers uniform in [0, 1), and a bit is 1 where its noise is below its probability.
    ///
    /// Returns float32 `[n, act_dim]` for normals and bits (0 or 1), int64 `[n]` for one categorical,
    /// int64 `[n, choices]` with `nvec`.
    ///
    /// Raises ValueError for a shape, for outputs of the actor that are not finite and for noise of
    /// categoricals that is not positive, TypeError for another dtype, MemoryError.
    fn draw<'py>(
        &self,
        py: Python<'py>,
        obs: &Bound<'py, PyAny>,
        noise: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = SAMPLER_DRAW.enter(0);
        let (mut obs, noise) = (Argument::new("obs", obs), Argument::new("noise", noise));
        let [n, _] = shape_of::<f32, Ix2, 2>(py, &mut obs)?;
        let mut actions = match (self.n_choices, self.single) {
            (None, _) => Output::new::<f32, Ix2, 2>(py, [n, self.n_noise])?,
            (Some(_), true) => Output::new::<i64, Ix1, 1>(py, [n])?,
            (Some(choices), false) => Output::new::<i64, Ix2, 2>(py, [n, choices])?,
        };
        writing(py, &self.inner, |acting, look| {
            let obs = look.read::<f32, Ix2>(obs, Some(&[n, self.obs_dim]))?;
            let noise = look.read::<f32, Ix2>(noise, Some(&[n, self.n_noise]))?;
            crossing.add_bytes(n * (self.obs_dim + self.n_noise) * size_of::<f32>());
            let to = match (self.n_choices, self.single) {
                (None, _) => ActionsOut::Continuous(
                    look.write::<f32, Ix2>(&mut actions, &[n, self.n_noise])?,
                ),
                (Some(_), true) => ActionsOut::Choices(look.write::<i64, Ix1>(&mut actions, &[n])?),
                (Some(choices), false) => {
                    ActionsOut::Choices(look.write::<i64, Ix2>(&mut actions, &[n, choices])?)
                }
            };
            acting.draw(&obs, &noise, to).map_err(to_py)
        })?;
        Ok(actions.give(py))
    }
}
