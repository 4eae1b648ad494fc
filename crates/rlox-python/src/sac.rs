//! `SacUpdate`: Soft Actor-Critic's update for Python, in place on NumPy views of torch's parameters.

use numpy::{Ix1, Ix2, Ix3};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::nn::adam::Adam;
use rlox_core::nn::sac::{AdamStep, Batch, Learners, Sac, Settings};
use rlox_core::nn::{Mlp, Precision};

use crate::arrays::{Argument, Looks, Output, Pinned, detaching, made, shape_of, writing};
use crate::crossing::{SAC_ACT, SAC_UPDATE};
use crate::errors::{copied, to_py};
use crate::lock::Lock;
use crate::nn::{MomentArrays, mlp, moments, pinned};
use crate::numbers::List;

/// A network's shape: widths (input, hidden…, output), and its activation, "tanh" or "relu".
type NetworkShape = (List<usize>, String);
/// Adam's lr, beta1, beta2, eps, and the number of its step, from 1 on.
type AdamArguments = (f64, f64, f64, f64, u64);

/// Whether the processor has AVX512-BF16, and RLOX_INSTRUCTIONS allows it. On some processors products of
/// bfloat16 are then faster than those of float32.
#[pyfunction]
pub fn has_bfloat16() -> bool {
    rlox_core::nn::has_bfloat16()
}

/// Whether the processor has AMX for bfloat16 as well, and this process may use it.
#[pyfunction]
pub fn has_amx() -> bool {
    rlox_core::nn::has_amx()
}

/// Updates of Soft Actor-Critic for an actor and two critics that are multilayer perceptrons.
///
/// It has the networks' shapes and working memory. The parameters are the caller's.
#[pyclass(frozen, module = "rlox._core")]
pub struct SacUpdate {
    inner: Lock<Sac>,
    /// Number of parameters of the actor and of both critics.
    sizes: [usize; 2],
    obs_dim: usize,
    act_dim: usize,
}

#[pymethods]
impl SacUpdate {
    /// `actor` maps `obs_dim` to `2 * act_dim` numbers, each of the two `critics` `obs_dim + act_dim`
    /// to 1. Each is ``(widths, activation)``, as in `collect_rollout`.
    ///
    /// With `bfloat16`, factors of large products are rounded to bfloat16; `has_bfloat16` says whether the
    /// processor has instructions for that. With `amx` as well, AMX computes them where `has_amx()`.
    /// With `fused`, biases and activations are computed with each part of a product as soon as that is
    /// finished; the results are the same.
    ///
    /// Raises ValueError for an unknown activation or for widths that do not fit each other,
    /// MemoryError.
    #[new]
    #[pyo3(signature = (actor, critics, bfloat16=false, amx=false, fused=true))]
    fn new(
        actor: NetworkShape,
        critics: (NetworkShape, NetworkShape),
        bfloat16: bool,
        amx: bool,
        fused: bool,
    ) -> PyResult<Self> {
        let precision = match (bfloat16, amx) {
            (false, _) => Precision::Float32,
            (true, false) => Precision::Bfloat16,
            (true, true) => Precision::Bfloat16ByAmx,
        };
        let network = |name, shape: &NetworkShape| {
            mlp(name, &shape.0.0, &shape.1).map(|mlp| mlp.with(precision).fused(fused))
        };
        let actor = network("actor", &actor)?;
        let critics = [
            network("critics[0]", &critics.0)?,
            network("critics[1]", &critics.1)?,
        ];
        let sizes = [actor.n_params(), critics.iter().map(Mlp::n_params).sum()];
        let sac = Sac::new(actor, critics).map_err(to_py)?;
        Ok(Self {
            obs_dim: sac.obs_dim(),
            act_dim: sac.act_dim(),
            inner: Lock::new(sac),
            sizes,
        })
    }

    /// Makes one update, in place. The GIL is released meanwhile.
    ///
    /// `actor`, `critics` and `log_alpha` are each ``(params, exp_avg, exp_avg_sq)``, float32 of one
    /// length; the critics' parameters lie one after the other. `targets`, float32, are the target
    /// networks' parameters. `batch` is what a buffer's `sample` returns. `noise`, float32 `[2,
    /// batch_size, act_dim]`, has standard normals for the actions at next_obs, then at obs. `adams`
    /// are the settings of Adam, ``(lr, beta1, beta2, eps, step)``, for actor, critics and temperature;
    /// None for the last leaves the temperature as it is. `threads` is 1 or 2; the result is the same.
    ///
    /// Returns the losses of critics, actor and temperature, None for one that is left as it is, and the
    /// absolute TD errors, float32 `[batch_size]`, the mean over both critics.
    ///
    /// Raises ValueError for a shape, an empty batch or arrays that share memory, TypeError for another
    /// dtype, KeyError for a column that the batch does not have, MemoryError.
    #[expect(clippy::too_many_arguments, reason = "an update's inputs")]
    #[pyo3(signature = (
        actor, critics, targets, log_alpha, batch, noise, *, gamma, tau, target_entropy, adams,
        threads
    ))]
    fn update<'py>(
        &self,
        py: Python<'py>,
        actor: MomentArrays<'py>,
        critics: MomentArrays<'py>,
        targets: &Bound<'py, PyAny>,
        log_alpha: MomentArrays<'py>,
        batch: &Bound<'py, PyDict>,
        noise: &Bound<'py, PyAny>,
        gamma: f32,
        tau: f64,
        target_entropy: f32,
        adams: (AdamArguments, AdamArguments, Option<AdamArguments>),
        threads: usize,
    ) -> PyResult<(f32, f32, Option<f32>, Bound<'py, PyAny>)> {
        let mut crossing = SAC_UPDATE.enter(0);
        // What may run Python comes first: looking the columns up, and pinning arrays. Then the arrays
        // are looked at.
        let column = |name: &'static str| {
            batch
                .get_item(name)?
                .ok_or_else(|| PyKeyError::new_err(format!("batch has no {name}")))
        };
        let (reward, terminated) = (column("reward")?, column("terminated")?);
        let (obs, action, next_obs) = (column("obs")?, column("action")?, column("next_obs")?);
        let weights = batch.get_item("weights")?;
        let (actor, critics) = (pinned("actor", &actor), pinned("critics", &critics));
        let targets = Pinned::new("targets", targets);
        let log_alpha = pinned("log_alpha", &log_alpha);
        let reward = Pinned::new("reward", &reward);
        let terminated = Pinned::new("terminated", &terminated);
        let noise = Pinned::new("noise", noise);
        let obs = Pinned::new("obs", &obs);
        let action = Pinned::new("action", &action);
        let next_obs = Pinned::new("next_obs", &next_obs);
        let weights = weights.as_ref().map(|of| Pinned::new("weights", of));
        let settings = Settings {
            gamma,
            tau,
            target_entropy,
            actor: step(adams.0),
            critic: step(adams.1),
            alpha: adams.2.map(step),
        };
        let (losses, td_errors) = detaching(py, &self.inner, |sac, scope| {
            let learners = Learners {
                actor: moments(scope, &actor, self.sizes[0])?,
                critics: moments(scope, &critics, self.sizes[1])?,
                targets: scope.write::<f32, Ix1>(&targets, Some(&[self.sizes[1]]))?,
                log_alpha: moments(scope, &log_alpha, 1)?,
            };
            let reward = scope.read::<f32, Ix1>(&reward, None)?;
            let n = reward.len();
            let (obs_shape, action_shape) = ([n, self.obs_dim], [n, self.act_dim]);
            let terminated = scope.flags::<Ix1>(&terminated, Some(&[n]))?;
            let noises = scope.read::<f32, Ix3>(&noise, Some(&[2, n, self.act_dim]))?;
            let (next_noise, noise) = noises.split_at(n * self.act_dim);
            let batch = Batch {
                obs: scope.read::<f32, Ix2>(&obs, Some(&obs_shape))?,
                action: scope.read::<f32, Ix2>(&action, Some(&action_shape))?,
                reward,
                next_obs: scope.read::<f32, Ix2>(&next_obs, Some(&obs_shape))?,
                terminated: &terminated,
                weights: weights
                    .as_ref()
                    .map(|weights| scope.read::<f32, Ix1>(weights, Some(&[n])))
                    .transpose()?,
                next_noise,
                noise,
            };
            crossing.add_bytes(scope.bytes_read());
            let losses = scope
                .detach(|| sac.update(learners, &batch, &settings, threads > 1))
                .map_err(to_py)?;
            Ok((losses, copied(sac.td_errors())?))
        })?;
        crossing.add_bytes(size_of_val(&td_errors[..]));
        let n = td_errors.len();
        let td_errors = made::owned(py, td_errors, [n])?;
        Ok((losses.critic, losses.actor, losses.alpha, td_errors))
    }

    /// Draws an action for each row of `obs`, float32 `[n, obs_dim]`, by the actor with the parameters
    /// `params`, float32, and standard normals `noise`, float32 `[n, act_dim]`. Returns float32 `[n,
    /// act_dim]`.
    ///
    /// Raises ValueError for a shape, TypeError for another dtype, MemoryError.
    fn act<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        obs: &Bound<'py, PyAny>,
        noise: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = SAC_ACT.enter(0);
        let params = Argument::new("params", params);
        let mut obs = Argument::new("obs", obs);
        let noise = Argument::new("noise", noise);
        let [n, _] = shape_of::<f32, Ix2, 2>(py, &mut obs)?;
        let shape = [n, self.act_dim];
        let mut actions = Output::new::<f32, Ix2, 2>(py, shape)?;
        writing(py, &self.inner, |sac, look| {
            let params = look.read::<f32, Ix1>(params, Some(&[self.sizes[0]]))?;
            let obs = look.read::<f32, Ix2>(obs, Some(&[n, self.obs_dim]))?;
            let noise = look.read::<f32, Ix2>(noise, Some(&shape))?;
            let to = look.write::<f32, Ix2>(&mut actions, &shape)?;
            // Observations, noise and actions; the noise is as large as the actions.
            crossing.add_bytes(n * (self.obs_dim + 2 * self.act_dim) * size_of::<f32>());
            sac.act(&params, &obs, &noise, to).map_err(to_py)
        })?;
        Ok(actions.give(py))
    }
}

fn step((lr, beta1, beta2, eps, t): AdamArguments) -> AdamStep {
    let adam = Adam {
        lr,
        beta1,
        beta2,
        eps,
    };
    (adam, t)
}
