//! Soft Actor-Critic's update for Python: NumPy views of torch's parameters in, moved in place.

use std::sync::{Mutex, PoisonError};

use numpy::{
    Ix1, Ix2, Ix3, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use rlox_core::nn::Mlp;
use rlox_core::nn::adam::Adam;
use rlox_core::nn::sac::{Batch, Learners, Sac, Settings, Step};

use crate::arrays::shared::{any_shape, input, output};
use crate::arrays::{addresses, apart};
use crate::crossing::{SAC_ACT, SAC_UPDATE};
use crate::errors::to_py;
use crate::nn::{Held, MomentArrays, mlp};

/// Widths (input, hidden…, output) and activation, "tanh" or "relu", of a network.
type Shape = (Vec<usize>, String);
/// Adam's lr, beta1, beta2, eps, and the number of this step.
type AdamStep = (f64, f64, f64, f64, u64);

/// Updates of Soft Actor-Critic for an actor and twin critics that are multilayer perceptrons.
///
/// Holds the networks' shapes and working memory; the parameters stay with the caller.
#[pyclass(frozen, module = "rlox._core")]
pub(crate) struct SacUpdate {
    inner: Mutex<Sac>,
    /// Number of parameters of the actor and of both critics.
    sizes: [usize; 2],
    obs_dim: usize,
    act_dim: usize,
}

#[pymethods]
impl SacUpdate {
    /// `actor`: `obs_dim -> 2 * act_dim`; `critics`: two of `obs_dim + act_dim -> 1`.
    ///
    /// Raises ValueError for an activation or widths that make no such network.
    #[new]
    fn new(actor: Shape, critics: (Shape, Shape)) -> PyResult<Self> {
        let network = |name, shape: &Shape| mlp(name, &shape.0, &shape.1);
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
            inner: Mutex::new(sac),
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
    /// another dtype, KeyError for a column that the batch has not.
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
    ) -> PyResult<(f32, f32, Bound<'py, PyArray1<f32>>)> {
        let mut crossing = SAC_UPDATE.enter(0);
        let column = |name: &'static str| {
            batch
                .get_item(name)?
                .ok_or_else(|| PyKeyError::new_err(format!("batch has no {name}")))
        };
        let mut actor = Held::new("actor", &actor, self.sizes[0])?;
        let mut critics = Held::new("critics", &critics, self.sizes[1])?;
        let mut log_alpha = Held::new("log_alpha", &log_alpha, 1)?;
        let mut targets = output::<f32, Ix1>("targets", targets, &[self.sizes[1]])?;
        let reward = any_shape::<f32, Ix1>("reward", &column("reward")?)?;
        let n = reward.as_slice()?.len();
        let (obs_shape, action_shape) = ([n, self.obs_dim], [n, self.act_dim]);
        let obs = input::<f32, Ix2>("obs", &column("obs")?, &obs_shape)?;
        let next_obs = input::<f32, Ix2>("next_obs", &column("next_obs")?, &obs_shape)?;
        let action = input::<f32, Ix2>("action", &column("action")?, &action_shape)?;
        let terminated = input::<bool, Ix1>("terminated", &column("terminated")?, &[n])?;
        let weights: Option<PyReadonlyArray<'_, f32, Ix1>> = batch
            .get_item("weights")?
            .map(|weights| input("weights", &weights, &[n]))
            .transpose()?;
        let noises = input::<f32, Ix3>("noise", noise, &[2, n, self.act_dim])?;
        let (next_noise, noise) = noises.as_slice()?.split_at(n * self.act_dim);
        let batch = Batch {
            obs: obs.as_slice()?,
            action: action.as_slice()?,
            reward: reward.as_slice()?,
            next_obs: next_obs.as_slice()?,
            terminated: terminated.as_slice()?,
            weights: weights.as_ref().map(|w| w.as_slice()).transpose()?,
            next_noise,
            noise,
        };
        let mut written = [
            actor.places("actor")?,
            critics.places("critics")?,
            log_alpha.places("log_alpha")?,
        ]
        .concat();
        written.push(("targets", addresses(targets.as_slice()?)));
        let read = [
            ("obs", addresses(batch.obs)),
            ("action", addresses(batch.action)),
            ("reward", addresses(batch.reward)),
            ("next_obs", addresses(batch.next_obs)),
            ("terminated", addresses(batch.terminated)),
            ("weights", addresses(batch.weights.unwrap_or_default())),
            ("noise", addresses(noises.as_slice()?)),
        ];
        apart(&written, &read)?;
        crossing.add_bytes(read.iter().map(|(_, place)| place.len()).sum());
        let learners = Learners {
            actor: actor.moments()?,
            critics: critics.moments()?,
            targets: targets.as_slice_mut()?,
            log_alpha: log_alpha.moments()?,
        };
        let settings = Settings {
            gamma,
            tau,
            target_entropy,
            actor: step(adams.0),
            critic: step(adams.1),
            alpha: adams.2.map(step),
        };
        let (losses, td_errors) = py
            .detach(|| {
                let mut sac = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
                let losses = sac.update(learners, &batch, &settings, threads > 1)?;
                Ok((losses, sac.td_errors().to_vec()))
            })
            .map_err(to_py)?;
        crossing.add_bytes(size_of_val(&td_errors[..]));
        Ok((
            losses.critic,
            losses.actor,
            PyArray1::from_vec(py, td_errors),
        ))
    }

    /// Actions `[n, act_dim]` float32 that the actor with `params` draws for `obs`, `[n, obs_dim]`
    /// float32, with standard normals `noise`, `[n, act_dim]`.
    fn act<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyAny>,
        obs: &Bound<'py, PyAny>,
        noise: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let mut crossing = SAC_ACT.enter(0);
        let params = input::<f32, Ix1>("params", params, &[self.sizes[0]])?;
        let obs = any_shape::<f32, Ix2>("obs", obs)?;
        let n = obs.shape()[0];
        let noise = input::<f32, Ix2>("noise", noise, &[n, self.act_dim])?;
        let actions = PyArray2::zeros(py, [n, self.act_dim], false);
        // Of the noise there is as much as of the actions.
        crossing.add_bytes(n * (self.obs_dim + 2 * self.act_dim) * size_of::<f32>());
        // Last: converting and making arrays may run Python, and that another call.
        let mut sac = self
            .inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        sac.act(
            params.as_slice()?,
            obs.as_slice()?,
            noise.as_slice()?,
            actions.readwrite().as_slice_mut()?,
        )
        .map_err(to_py)?;
        Ok(actions)
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
