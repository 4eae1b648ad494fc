//! `ppo_update`: PPO's update on torch's own memory; and the arguments of networks that several
//! functions take.

use numpy::{Ix1, Ix2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::nn::adam::{Adam, Moments};
use rlox_core::nn::ppo::{self, ActorCritic, Ppo, RolloutData, SampledActions};
use rlox_core::nn::{Activation, Mlp};

use crate::arrays::{Detaching, Pinned, Unguarded, detaching};
use crate::crossing::PPO_UPDATE;
use crate::errors::to_py;
use crate::numbers::{List, size};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
/// Parameters, and Adam's two moments of them.
pub(crate) type MomentArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);
/// A network to be trained: widths (input, hidden…, output), "tanh" or "relu", moments.
type NetworkWithMoments<'py> = (List<usize>, String, MomentArrays<'py>);

/// The network of these widths and this activation, "tanh" or "relu". ValueError names it `argument`.
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

/// A network to be used: widths (input, hidden…, output), "tanh" or "relu", parameters.
pub(crate) type NetworkWithParams<'py> = (List<usize>, String, Bound<'py, PyAny>);

/// Means over the minibatches, in the order of `ppo_update`'s docs.
type Means = (f64, f64, f64, f64, f64, f64);

/// ValueError where the arguments of two kinds of actions are given: at most one of `nvec`, `log_std`
/// and `bits` may be.
pub(crate) fn only_one_kind(
    nvec: &Option<List<usize>>,
    has_log_std: bool,
    bits: bool,
) -> PyResult<()> {
    let problem = match (nvec.is_some(), has_log_std, bits) {
        (true, true, _) => {
            "nvec: belongs to choices, and log_std was given, which belongs to continuous actions"
        }
        (true, false, true) => "nvec: belongs to choices, and bits is true",
        (false, true, true) => "log_std: belongs to continuous actions, and bits is true",
        _ => return Ok(()),
    };
    Err(PyValueError::new_err(problem))
}

/// The three arrays of moments, pinned. Errors call all of them `argument`.
pub(crate) fn pinned<'a>(argument: &'static str, arrays: &'a MomentArrays<'_>) -> [Pinned<'a>; 3] {
    [&arrays.0, &arrays.1, &arrays.2].map(|array| Pinned::new(argument, array))
}

/// The three arrays of moments as slices to be written to; each must be float32 `[n]`.
pub(crate) fn moments<'x>(
    scope: &'x Detaching<'_>,
    [params, exp_avg, exp_avg_sq]: &'x [Pinned<'_>; 3],
    n: usize,
) -> PyResult<Moments<'x>> {
    let write = |array| scope.write::<f32, Ix1>(array, Some(&[n]));
    Ok(Moments {
        params: write(params)?,
        exp_avg: write(exp_avg)?,
        exp_avg_sq: write(exp_avg_sq)?,
    })
}

/// One update of PPO (Schulman et al. 2017): epochs of minibatch steps of Adam on the clipped
/// surrogate.
///
/// Networks are multilayer perceptrons ``(widths, activation, moments)``: input, hidden and output
/// widths, "tanh" or "relu" between the layers, and ``moments = (params, exp_avg, exp_avg_sq)``, each
/// float32 of shape (n_params,), which are updated in place. Parameters lie layer after layer, weight
/// [out, in] in row-major order, then bias [out], as in torch. The GIL is released meanwhile.
///
/// Parameters
/// ----------
/// actor, critic : tuple
///     Networks. The actor's outputs are logits or means, the critic's output is the value.
/// log_std : tuple or None
///     Moments of the logarithms of the standard deviations, shape (act_dim,); None for discrete
///     actions and bits.
/// rollout : tuple
///     ``(obs, actions, log_probs, advantages, returns)``. ``obs`` is float32 of shape (n, obs_dim).
///     ``actions`` is int64 of shape (n,), with ``nvec`` (n, len(nvec)), or float32 of shape
///     (n, act_dim). The others are float32 of shape (n,).
/// order : ndarray of int64, shape (n_epochs * n,)
///     The order of the transitions in each epoch: a permutation of 0 to n - 1 per epoch.
/// step : int
///     The number of steps that Adam has made before.
/// batch_size, clip_range, normalize_advantage, ent_coef, vf_coef, max_grad_norm, clip_range_vf, target_kl
///     As in ``rlox.PPO``. With ``target_kl`` the update may end early.
/// nvec : list of int or None
///     For several choices at once: the number of categories of each, whose sum is the number of
///     logits.
/// bits : bool
///     Whether actions are bits: float32 of shape (n, act_dim), each 0 or 1, the actor's outputs being
///     the logits of 1.
/// lr, betas, eps
///     As in ``torch.optim.Adam``.
/// threads : int
///     Above 1, a second thread may compute the critic's side. The result is the same to the bit.
/// fused : bool
///     Whether biases and activations are computed with each part of a product as soon as that is
///     finished. The result is the same to the bit.
/// by_columns : bool
///     Whether the loss of actions by index is computed for each possible action over all rows of a
///     minibatch, and rows of few numbers are gathered by their width. The result is the same to the bit.
///
/// Returns
/// -------
/// figures : tuple of six floats
///     Means over the minibatches of the loss, the policy's loss, the value's loss, the entropy's
///     loss, the approximate KL divergence and the fraction of clipped ratios; NaN without minibatches.
/// n_minibatches : int
///     The number of minibatches that a step was made for.
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, an array not contiguous in C order, an index or an action out of range, arrays
///     that share memory with one that is written to, a clip range or ``target_kl`` that is negative or
///     NaN, an ``nvec`` that does not sum to the actor's outputs, more than one of ``log_std``,
///     ``nvec`` and ``bits``, or bits that are not 0 or 1.
/// TypeError
///     An argument that is no array, or has another dtype.
/// MemoryError
///     There is no memory for the networks or minibatches.
#[pyfunction]
#[pyo3(signature = (actor, critic, log_std, rollout, order, step, *, batch_size, clip_range,
    normalize_advantage, ent_coef, vf_coef, max_grad_norm, lr, betas, eps, clip_range_vf=None,
    target_kl=None, nvec=None, bits=false, threads=1, fused=true, by_columns=true))]
#[expect(clippy::too_many_arguments, reason = "those of the algorithm")]
pub fn ppo_update<'py>(
    py: Python<'py>,
    actor: NetworkWithMoments<'py>,
    critic: NetworkWithMoments<'py>,
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
    clip_range_vf: Option<f32>,
    target_kl: Option<f64>,
    nvec: Option<List<usize>>,
    bits: bool,
    threads: usize,
    fused: bool,
    by_columns: bool,
) -> PyResult<(Means, usize)> {
    let mut crossing = PPO_UPDATE.enter(0);
    only_one_kind(&nvec, log_std.is_some(), bits)?;
    let ppo = Ppo {
        batch_size: size("batch_size", batch_size)?,
        clip_range,
        normalize_advantage,
        ent_coef,
        vf_coef,
        clip_range_vf,
        target_kl,
        max_grad_norm,
        adam: Adam {
            lr,
            beta1: betas.0,
            beta2: betas.1,
            eps,
        },
        by_columns,
    };
    let actor_mlp = mlp("actor", &actor.0.0, &actor.1)?.fused(fused);
    let critic_mlp = mlp("critic", &critic.0.0, &critic.1)?.fused(fused);
    let (of_actor, of_critic) = (pinned("actor", &actor.2), pinned("critic", &critic.2));
    let of_log_std = log_std.as_ref().map(|arrays| pinned("log_std", arrays));
    let [obs, actions, log_probs, advantages, returns] = &rollout;
    let obs = Pinned::new("obs", obs);
    let actions = Pinned::new("actions", actions);
    let log_probs = Pinned::new("log_probs", log_probs);
    let advantages = Pinned::new("advantages", advantages);
    let returns = Pinned::new("returns", returns);
    let order = Pinned::new("order", order);
    let figures = detaching(py, &Unguarded, |(), scope| {
        let act_dim = actor_mlp.n_outputs();
        let policy = ActorCritic {
            actor: ppo::Network {
                mlp: &actor_mlp,
                moments: moments(scope, &of_actor, actor_mlp.n_params())?,
            },
            critic: ppo::Network {
                mlp: &critic_mlp,
                moments: moments(scope, &of_critic, critic_mlp.n_params())?,
            },
            log_std: of_log_std
                .as_ref()
                .map(|arrays| moments(scope, arrays, act_dim))
                .transpose()?,
        };
        let log_probs = scope.read::<f32, Ix1>(&log_probs, None)?;
        let n = log_probs.len();
        let rollout = RolloutData {
            obs: scope.read::<f32, Ix2>(&obs, Some(&[n, actor_mlp.n_inputs()]))?,
            actions: match (&policy.log_std, &nvec) {
                (Some(_), _) => SampledActions::Continuous(
                    scope.read::<f32, Ix2>(&actions, Some(&[n, act_dim]))?,
                ),
                (None, _) if bits => {
                    SampledActions::Bits(scope.read::<f32, Ix2>(&actions, Some(&[n, act_dim]))?)
                }
                (None, Some(List(nvec))) => SampledActions::Several {
                    chosen: scope.read::<i64, Ix2>(&actions, Some(&[n, nvec.len()]))?,
                    nvec,
                },
                (None, None) => {
                    SampledActions::Discrete(scope.read::<i64, Ix1>(&actions, Some(&[n]))?)
                }
            },
            log_probs,
            advantages: scope.read::<f32, Ix1>(&advantages, Some(&[n]))?,
            returns: scope.read::<f32, Ix1>(&returns, Some(&[n]))?,
        };
        let order = scope.read::<i64, Ix1>(&order, None)?;
        crossing.add_bytes(scope.bytes_read());
        scope
            .detach(|| ppo.update(policy, &rollout, order, step, threads))
            .map_err(to_py)
    })?;
    let means = (
        figures.loss,
        figures.policy_loss,
        figures.value_loss,
        figures.entropy_loss,
        figures.approx_kl,
        figures.clip_fraction,
    );
    Ok((means, figures.n_minibatches))
}
