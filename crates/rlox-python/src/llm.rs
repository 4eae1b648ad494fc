//! `compute_token_kl`, `compute_group_advantages`.
#![allow(
    unsafe_code,
    reason = "arrays are read where they lie, which is sound while the interpreter is kept"
)]

use numpy::{Ix1, Ix2};
use pyo3::prelude::*;
use rlox_core::Real;
use rlox_core::switchboard::LlmOps;

use crate::arrays::{Float, Number, Results, addresses, any_shape, float_type, input};
use crate::crossing::{GROUP_ADVANTAGES, TOKEN_KL};
use crate::errors::to_py;
use crate::numbers::size;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// Sum over each sequence's tokens of Schulman's k3 estimate of KL(policy || ref).
///
/// ``k3 = exp(d) - d - 1`` with ``d = log_probs_ref - log_probs_policy`` (Schulman 2020, "Approximating
/// KL divergence"); computed so that it does not cancel where the models are close. Sums of eight terms
/// are made in the inputs' type, sums of those in float64.
///
/// Parameters
/// ----------
/// log_probs_policy, log_probs_ref : ndarray, shape (B, T), float64 or float32
///     Both of one dtype: the log-probability of each sampled token under either model.
/// mask : ndarray of bool, shape (B, T), optional
///     Tokens that count, where a byte of it is not 0; the others may hold anything.
/// out : ndarray, optional
///     Written and returned in place of a new array; of the result's shape and dtype, and apart from
///     the inputs. After an error it holds anything.
///
/// Returns
/// -------
/// ndarray, shape (B,), of the inputs' dtype
///
/// Raises
/// ------
/// ValueError
///     A shape, an array not contiguous in C order, a sum that is NaN.
/// TypeError
///     No array, or another dtype.
#[pyfunction]
#[pyo3(signature = (log_probs_policy, log_probs_ref, mask=None, *, out=None))]
pub(crate) fn compute_token_kl<'py>(
    log_probs_policy: Any<'_, 'py>,
    log_probs_ref: Any<'_, 'py>,
    mask: Option<Any<'_, 'py>>,
    out: Option<Any<'_, 'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    fn run<'py, T: Real + Number>(
        policy: Any<'_, 'py>,
        reference: Any<'_, 'py>,
        mask: Option<Any<'_, 'py>>,
        out: Option<Any<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = TOKEN_KL.enter(0);
        let py = policy.py();
        let policy = any_shape::<T, Ix2>("log_probs_policy", policy)?;
        let reference = input::<T, Ix2>("log_probs_ref", reference, policy.shape())?;
        let mask = mask
            .map(|mask| input::<bool, Ix2>("mask", mask, policy.shape()))
            .transpose()?;
        let shape = [policy.shape()[0]];
        // SAFETY: the interpreter is kept from here on, and results lie apart.
        let (mask, policy, reference) = unsafe {
            let mask = mask.as_ref().map(|mask| mask.as_bytes());
            (mask, policy.as_slice(), reference.as_slice())
        };
        let inputs = [
            addresses(policy),
            addresses(reference),
            addresses(mask.unwrap_or_default()),
        ];
        let mut sums = Results::<T, Ix1>::new(py, "out", out, shape, &inputs)?;
        let mask_is = size_of_val(mask.unwrap_or_default());
        crossing.add_bytes(2 * size_of_val(policy) + mask_is + size_of::<T>() * shape[0]);
        // SAFETY: the same.
        let to = unsafe { sums.as_mut_slice() };
        LlmOps::compute_token_kl_into(policy, reference, mask, to).map_err(to_py)?;
        Ok(sums.into_any())
    }
    match float_type("log_probs_policy", log_probs_policy)? {
        Float::F64 => run::<f64>(log_probs_policy, log_probs_ref, mask, out),
        Float::F32 => run::<f32>(log_probs_policy, log_probs_ref, mask, out),
    }
}

/// Each reward's advantage over its group, as in GRPO (Shao et al. 2024, section 4.1.2).
///
/// ``(r - mean(group)) / (std(group) + epsilon)``, with the population standard deviation.
///
/// Parameters
/// ----------
/// rewards : ndarray, shape (n_groups * group_size,), float64 or float32
///     One group after the other.
/// group_size : int
/// epsilon : float, above 0
///     A group whose rewards are all equal gets advantages of zero.
/// out : ndarray, optional
///     Written and returned in place of a new array; of the result's shape and dtype, and apart from
///     the inputs. After an error it holds anything.
///
/// Returns
/// -------
/// ndarray of the shape and dtype of ``rewards``
///
/// Raises
/// ------
/// ValueError
///     A group size that does not divide the rewards, a range, an array not contiguous, a reward
///     that is not finite.
/// TypeError
///     No array, or another dtype.
#[pyfunction]
#[pyo3(signature = (rewards, group_size, epsilon=1e-8, *, out=None))]
pub(crate) fn compute_group_advantages<'py>(
    rewards: Any<'_, 'py>,
    group_size: i64,
    epsilon: f64,
    out: Option<Any<'_, 'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    fn run<'py, T: Real + Number>(
        rewards: Any<'_, 'py>,
        group_size: usize,
        epsilon: f64,
        out: Option<Any<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut crossing = GROUP_ADVANTAGES.enter(0);
        let py = rewards.py();
        let rewards = any_shape::<T, Ix1>("rewards", rewards)?;
        // SAFETY: the interpreter is kept from here on, and results lie apart.
        let rewards = unsafe { rewards.as_slice() };
        let (shape, inputs) = ([rewards.len()], [addresses(rewards)]);
        let mut advantages = Results::<T, Ix1>::new(py, "out", out, shape, &inputs)?;
        crossing.add_bytes(2 * size_of_val(rewards));
        // SAFETY: the same.
        let to = unsafe { advantages.as_mut_slice() };
        LlmOps::compute_group_advantages_into(rewards, group_size, epsilon, to).map_err(to_py)?;
        Ok(advantages.into_any())
    }
    let group_size = size("group_size", group_size)?;
    match float_type("rewards", rewards)? {
        Float::F64 => run::<f64>(rewards, group_size, epsilon, out),
        Float::F32 => run::<f32>(rewards, group_size, epsilon, out),
    }
}
