//! `ppo_update`.

use std::ops::Range;

use numpy::{Ix1, Ix2, PyReadwriteArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::nn::adam::{Adam, Moments};
use rlox_core::nn::ppo::{Actions, ActorCritic, Network, Ppo, Rollout};
use rlox_core::nn::{Activation, Mlp};

use crate::arrays::shared::{any_shape, input, output};
use crate::arrays::{addresses, apart};
use crate::crossing::PPO_UPDATE;
use crate::errors::to_py;
use crate::numbers::size;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
/// Parameters, and Adam's two moments of them.
pub(crate) type MomentArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);
/// Widths, the name of the activation, and where the parameters lie.
type NetworkArguments<'py> = (Vec<usize>, String, MomentArrays<'py>);

/// The shape of a network; `argument` is its public name.
pub(crate) fn mlp(argument: &str, widths: &[usize], activation: &str) -> PyResult<Mlp> {
    let activation = match activation {
        "tanh" => Activation::Tanh,
        "relu" => Activation::Relu,
        other => {
            return Err(PyValueError::new_err(format!(
                "{argument}: has activation {other:?}, expected \"tanh\" or \"relu\""
            )));
        }
    };
    Mlp::new(widths, activation).map_err(to_py)
}

/// Three arrays of n float32, held for writing; whoever writes to several sees that they lie apart.
pub(crate) struct Held<'py>([PyReadwriteArray<'py, f32, Ix1>; 3]);

impl<'py> Held<'py> {
    pub(crate) fn new(argument: &str, arrays: &MomentArrays<'py>, n: usize) -> PyResult<Self> {
        let hold = |array| output::<f32, Ix1>(argument, array, &[n]);
        Ok(Self([hold(&arrays.0)?, hold(&arrays.1)?, hold(&arrays.2)?]))
    }

    /// The argument, and the addresses of each of them.
    pub(crate) fn places<'a>(&self, argument: &'a str) -> PyResult<[(&'a str, Range<usize>); 3]> {
        let place = |i: usize| PyResult::Ok((argument, addresses(self.0[i].as_slice()?)));
        Ok([place(0)?, place(1)?, place(2)?])
    }

    pub(crate) fn moments(&mut self) -> PyResult<Moments<'_>> {
        let [params, exp_avg, exp_avg_sq] = &mut self.0;
        Ok(Moments {
            params: params.as_slice_mut()?,
            exp_avg: exp_avg.as_slice_mut()?,
            exp_avg_sq: exp_avg_sq.as_slice_mut()?,
        })
    }
}

/// One update of PPO (Schulman et al. 2017): epochs of minibatch Adam on the clipped surrogate.
///
/// Networks are multilayer perceptrons ``(widths, activation, moments)``: input, hidden and output
/// widths, "tanh" or "relu" between the layers, and ``moments = (params, exp_avg, exp_avg_sq)``, of
/// shape (n_params,) and float32 each, which are written to. Parameters lie layer after layer,
/// weight [out, in] in row-major order, then bias [out], as in torch. The GIL is released.
///
/// Parameters
/// ----------
/// actor, critic : tuple
///     Networks for logits, or means, and for the value.
/// log_std : tuple or None
///     Moments of the log-deviation, shape (act_dim,); None means discrete actions.
/// rollout : tuple
///     ``(obs, actions, log_probs, advantages, returns)``: float32 of shape (n, obs_dim), int64 of
///     shape (n,) or float32 of shape (n, act_dim), and three times float32 of shape (n,).
/// order : ndarray of int64, shape (n_epochs * n,)
///     One permutation of the transitions per epoch.
/// step : int
///     Steps that Adam has made.
/// batch_size, clip_range, normalize_advantage, ent_coef, vf_coef, max_grad_norm
///     As ``rlox.PPO`` has them.
/// lr, betas, eps
///     As ``torch.optim.Adam`` has them.
/// threads : int
///     Above 1, actor and critic may learn side by side. The result is the same, to the bit.
///
/// Returns
/// -------
/// tuple of six floats
///     Means over the minibatches of the loss, the policy's loss, the value's loss, the entropy's
///     loss, the approximate KL divergence and the fraction of clipped ratios.
///
/// Raises
/// ------
/// ValueError
///     A shape, an array not contiguous in C order, an index or an action that is none.
/// TypeError
///     No array, or another dtype.
#[pyfunction]
#[pyo3(signature = (actor, critic, log_std, rollout, order, step, *, batch_size, clip_range,
    normalize_advantage, ent_coef, vf_coef, max_grad_norm, lr, betas, eps, threads=1))]
#[expect(clippy::too_many_arguments, reason = "those of the algorithm")]
pub(crate) fn ppo_update<'py>(
    py: Python<'py>,
    actor: NetworkArguments<'py>,
    critic: NetworkArguments<'py>,
    log_std: Option<MomentArrays<'py>>,
    rollout: [Bound<'py, PyAny>; 5],
    order: Any<'_, 'py>,
    step: u64,
    batch_size: i64,
    clip_range: f32,
    normalize_advantage: bool,
    ent_coef: f32,
    vf_coef: f32,
    max_grad_norm: f64,
    lr: f64,
    betas: (f64, f64),
    eps: f64,
    threads: usize,
) -> PyResult<(f64, f64, f64, f64, f64, f64)> {
    let mut crossing = PPO_UPDATE.enter(0);
    let ppo = Ppo {
        batch_size: size("batch_size", batch_size)?,
        clip_range,
        normalize_advantage,
        ent_coef,
        vf_coef,
        max_grad_norm,
        adam: Adam {
            lr,
            beta1: betas.0,
            beta2: betas.1,
            eps,
        },
    };
    let actor_mlp = mlp("actor", &actor.0, &actor.1)?;
    let critic_mlp = mlp("critic", &critic.0, &critic.1)?;
    let mut actor = Held::new("actor", &actor.2, actor_mlp.n_params())?;
    let mut critic = Held::new("critic", &critic.2, critic_mlp.n_params())?;
    let act_dim = actor_mlp.n_outputs();
    let mut log_std = log_std
        .map(|arrays| Held::new("log_std", &arrays, act_dim))
        .transpose()?;

    let [obs, actions, log_probs, advantages, returns] = &rollout;
    let log_probs = any_shape::<f32, Ix1>("log_probs", log_probs)?;
    let n = log_probs.shape()[0];
    let obs = input::<f32, Ix2>("obs", obs, &[n, actor_mlp.n_inputs()])?;
    let advantages = input::<f32, Ix1>("advantages", advantages, &[n])?;
    let returns = input::<f32, Ix1>("returns", returns, &[n])?;
    let order = any_shape::<i64, Ix1>("order", order)?;
    let (discrete, continuous);
    let actions = if log_std.is_some() {
        continuous = input::<f32, Ix2>("actions", actions, &[n, act_dim])?;
        Actions::Continuous(continuous.as_slice()?)
    } else {
        discrete = input::<i64, Ix1>("actions", actions, &[n])?;
        Actions::Discrete(discrete.as_slice()?)
    };

    let mut written = [actor.places("actor")?, critic.places("critic")?].concat();
    if let Some(log_std) = &log_std {
        written.extend(log_std.places("log_std")?);
    }
    let order = order.as_slice()?;
    let actions_lie = match actions {
        Actions::Discrete(actions) => addresses(actions),
        Actions::Continuous(actions) => addresses(actions),
    };
    let read = [
        ("obs", addresses(obs.as_slice()?)),
        ("actions", actions_lie),
        ("log_probs", addresses(log_probs.as_slice()?)),
        ("advantages", addresses(advantages.as_slice()?)),
        ("returns", addresses(returns.as_slice()?)),
        ("order", addresses(order)),
    ];
    apart(&written, &read)?;
    let policy = ActorCritic {
        actor: Network {
            mlp: &actor_mlp,
            moments: actor.moments()?,
        },
        critic: Network {
            mlp: &critic_mlp,
            moments: critic.moments()?,
        },
        log_std: log_std.as_mut().map(Held::moments).transpose()?,
    };
    let rollout = Rollout {
        obs: obs.as_slice()?,
        actions,
        log_probs: log_probs.as_slice()?,
        advantages: advantages.as_slice()?,
        returns: returns.as_slice()?,
    };
    crossing.add_bytes(read.iter().map(|(_, place)| place.len()).sum());
    let figures = py
        .detach(|| ppo.update(policy, &rollout, order, step, threads))
        .map_err(to_py)?;
    Ok((
        figures.loss,
        figures.policy_loss,
        figures.value_loss,
        figures.entropy_loss,
        figures.approx_kl,
        figures.clip_fraction,
    ))
}
