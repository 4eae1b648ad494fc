//! `compute_token_kl` and `compute_group_advantages`: operations of fine-tuning language models.

use numpy::{Ix1, Ix2};
use pyo3::prelude::*;
use rlox_core::Real;
use rlox_core::switchboard::{LlmOps, P29};

use crate::arrays::{
    Argument, Float, Looked, Looks, Number, Output, ResultArrays, Unguarded, float_type, shape_of,
    writing,
};
use crate::crossing::{GROUP_ADVANTAGES, TOKEN_KL};
use crate::errors::to_py;
use crate::numbers::size;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// Of [`compute_group_advantages`]; a token KL has one number for each sequence.
static ARRAYS: ResultArrays = ResultArrays::new(P29);

/// The k3 estimate of KL(policy || ref) of each sequence, in nats: the sum over its tokens.
///
/// ``k3 = exp(d) - d - 1`` with ``d = log_probs_ref - log_probs_policy`` (Schulman 2020, "Approximating
/// KL divergence"). It is computed without cancellation where the models are close. Eight terms at a
/// time are summed in the inputs' type, and these sums in float64.
///
/// Parameters
/// ----------
/// log_probs_policy, log_probs_ref : ndarray, shape (B, T), float64 or float32
///     Both of one dtype: the log-probability of each sampled token under either model.
/// mask : ndarray of bool, shape (B, T), optional
///     True for tokens that count. The log-probabilities of the others may be anything.
/// out : ndarray, optional
///     Written and returned in place of a new array. It has the result's shape and dtype and shares no
///     memory with the inputs. After an error its contents are unspecified.
///
/// Returns
/// -------
/// ndarray, shape (B,), of the inputs' dtype
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, an array not contiguous in C order, a sum that is NaN.
/// TypeError
///     An argument that is no array, or has another dtype.
/// MemoryError
///     There is no memory for the result.
#[pyfunction]
#[pyo3(signature = (log_probs_policy, log_probs_ref, mask=None, *, out=None))]
pub fn compute_token_kl<'py>(
    log_probs_policy: Any<'_, 'py>,
    log_probs_ref: Any<'_, 'py>,
    mask: Option<Any<'_, 'py>>,
    out: Option<Any<'_, 'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    fn run<'py, T: Real + Number>(
        py: Python<'py>,
        mut policy: Argument<'_>,
        reference: Any<'_, 'py>,
        mask: Option<Any<'_, 'py>>,
        out: Option<Any<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = TOKEN_KL.enter(0);
        let mut sums = match out {
            Some(out) => Output::given("out", out),
            None => {
                let [n, _] = shape_of::<T, Ix2, 2>(py, &mut policy)?;
                Output::new::<T, Ix1, 1>(py, [n])?
            }
        };
        let reference = Argument::new("log_probs_ref", reference);
        let mask = mask.map(|mask| Argument::new("mask", mask));
        writing(py, &Unguarded, |(), look| {
            let policy = look.read::<T, Ix2>(policy, None)?;
            let reference = look.read::<T, Ix2>(reference, Some(policy.shape()))?;
            let mask = mask
                .map(|mask| look.read::<bool, Ix2>(mask, Some(policy.shape())))
                .transpose()?;
            let mask = mask.as_ref().map(Looked::bytes);
            let to = look.write::<T, Ix1>(&mut sums, &policy.shape()[..1])?;
            let mask_is = size_of_val(mask.unwrap_or_default());
            crossing.add_bytes(2 * size_of_val(&policy[..]) + mask_is + size_of_val(to));
            LlmOps::compute_token_kl_into(&policy, &reference, mask, to).map_err(to_py)
        })?;
        Ok(sums.give(py))
    }
    let py = log_probs_policy.py();
    let mut policy = Argument::new("log_probs_policy", log_probs_policy);
    match float_type(py, &mut policy)? {
        Float::F64 => run::<f64>(py, policy, log_probs_ref, mask, out),
        Float::F32 => run::<f32>(py, policy, log_probs_ref, mask, out),
    }
}

/// The advantage of each reward over its group, as in GRPO (Shao et al. 2024, section 4.1.2).
///
/// ``(r - mean(group)) / (std(group) + epsilon)``, with the population standard deviation.
///
/// Parameters
/// ----------
/// rewards : ndarray, shape (n_groups * group_size,), float64 or float32
///     One group after the other.
/// group_size : int
/// epsilon : float, above 0
///     Added to the standard deviation, so that a group of equal rewards gets advantages of zero.
/// out : ndarray, optional
///     Written and returned in place of a new array. It has the result's shape and dtype and shares no
///     memory with the inputs. After an error its contents are unspecified.
///
/// Returns
/// -------
/// ndarray of the shape and dtype of ``rewards``
///
/// Raises
/// ------
/// ValueError
///     A group size that does not divide the number of rewards, an epsilon that is not positive, an
///     array not contiguous in C order, a reward that is not finite.
/// TypeError
///     An argument that is no array, or has another dtype.
/// MemoryError
///     There is no memory for the result.
#[pyfunction]
#[pyo3(signature = (rewards, group_size, epsilon=1e-8, *, out=None))]
pub fn compute_group_advantages<'py>(
    rewards: Any<'_, 'py>,
    group_size: i64,
    epsilon: f64,
    out: Option<Any<'_, 'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    fn run<'py, T: Real + Number>(
        py: Python<'py>,
        mut rewards: Argument<'_>,
        group_size: usize,
        epsilon: f64,
        out: Option<Any<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = GROUP_ADVANTAGES.enter(0);
        let mut advantages = match out {
            Some(out) => Output::given("out", out),
            None => ARRAYS.take::<T, Ix1, 1>(py, shape_of::<T, Ix1, 1>(py, &mut rewards)?)?,
        };
        writing(py, &Unguarded, |(), look| {
            let rewards = look.read::<T, Ix1>(rewards, None)?;
            let to = look.write::<T, Ix1>(&mut advantages, rewards.shape())?;
            crossing.add_bytes(2 * size_of_val(to));
            LlmOps::compute_group_advantages_into(&rewards, group_size, epsilon, to).map_err(to_py)
        })?;
        Ok(advantages.give(py))
    }
    let group_size = size("group_size", group_size)?;
    let py = rewards.py();
    let mut rewards = Argument::new("rewards", rewards);
    match float_type(py, &mut rewards)? {
        Float::F64 => run::<f64>(py, rewards, group_size, epsilon, out),
        Float::F32 => run::<f32>(py, rewards, group_size, epsilon, out),
    }
}
