//! Soft Actor-Critic's update for Python: NumPy views of torch's parameters in, moved in place.

use numpy::{Ix1, Ix2, Ix3};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rlox_core::nn::Mlp;
use rlox_core::nn::adam::Adam;
use rlox_core::nn::sac::{Batch, Learners, Sac, Settings, Step};

use crate::arrays::{Argument, Looks, Output, Pinned, detaching, made, shape_of, writing};
use crate::crossing::{SAC_ACT, SAC_UPDATE};
use crate::errors::{copied, to_py};
use crate::lock::Lock;
use crate::nn::{MomentArrays, mlp, moments, pinned};
use crate::numbers::List;

/// Widths (input, hidden…, output) and activation, "tanh" or "relu", of a network.
type Shape = (List<usize>, String);
/// Adam's lr, beta1, beta2, eps, and the number of this step.
type AdamStep = (f64, f64, f64, f64, u64);

/// Updates of Soft Actor-Critic for an actor and twin critics that are multilayer perceptrons.
///
/// Holds the networks' shapes and working memory; the parameters stay with the caller.
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
    /// `actor`: `obs_dim -> 2 * act_dim`; `critics`: two of `obs_dim + act_dim -> 1`.
    ///
    /// Raises ValueError for an activation or widths that make no such network, MemoryError for one
    /// that does not fit into memory.
    #[new]
    fn new(actor: Shape, critics: (Shape, Shape)) -> PyResult<Self> {
        let network = |name, shape: &Shape| mlp(name, &shape.0.0, &shape.1);
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

    /// One update, in place.
    ///
    /// `batch` as a buffer's `sample` gives it; `noise`: standard normals `[2, batch_size, act_dim]`
    /// float32 for the actions at next_obs and at obs; `adams` of actor, critics and temperature,
    /// whose `None` leaves the temperature as it is. `threads` is 1 or 2: the result is the same.
    ///
    /// Returns the losses of critics and actor, and the mean absolute TD errors `[batch_size]`
    /// float32.
    ///
    /// Raises ValueError for a shape, an empty batch or arrays that share memory, TypeError for
    /// another dtype, KeyError for a column that the batch has not, MemoryError.
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
        adams: (AdamStep, AdamStep, Option<AdamStep>),
        threads: usize,
    ) -> PyResult<(f32, f32, Bound<'py, PyAny>)> {
        let mut crossing = SAC_UPDATE.enter(0);
        // First all that Python may run for, then a look at the arrays.
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
        Ok((losses.critic, losses.actor, td_errors))
    }

    /// Actions `[n, act_dim]` float32 that the actor with `params` draws for `obs`, `[n, obs_dim]`
    /// float32, with standard normals `noise`, `[n, act_dim]`.
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
            // Of the noise there is as much as of the actions.
            crossing.add_bytes(n * (self.obs_dim + 2 * self.act_dim) * size_of::<f32>());
            sac.act(&params, &obs, &noise, to).map_err(to_py)
        })?;
        Ok(actions.give(py))
    }
}

fn step((lr, beta1, beta2, eps, t): AdamStep) -> Step {
    let adam = Adam {
        lr,
        beta1,
        beta2,
        eps,
    };
    (adam, t)
}
