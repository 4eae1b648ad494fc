//! `compute_gae`, `compute_gae_batched` and `compute_vtrace`: advantages and value targets.

use numpy::ndarray::Dimension;
use numpy::{Ix1, Ix2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::Real;
use rlox_core::switchboard::{Chosen, P29};
use rlox_core::training::gae::{self, Layout};
use rlox_core::training::vtrace;

use crate::arrays::{
    Argument, Float, Looked, Looks, Number, Output, ResultArrays, Unguarded, Writing, float_type,
    shape_of, writing,
};
use crate::crossing::{GAE, GAE_BATCHED, VTRACE};
use crate::errors::to_py;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type TwoArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);
type Out<'a, 'py> = Option<&'a TwoArrays<'py>>;

static GAE_ARRAYS: ResultArrays = ResultArrays::new(P29);
static GAE_BATCHED_ARRAYS: ResultArrays = ResultArrays::new(P29);
static VTRACE_ARRAYS: ResultArrays = ResultArrays::new(P29);

/// GAE advantages and returns of one sequence of n steps.
///
/// Generalised advantage estimation (Schulman et al. 2016, equations 11, 12, 16):
/// ``delta_t = r_t + gamma * (1 - done_t) * V_{t+1} - V_t``,
/// ``A_t = delta_t + gamma * gae_lambda * (1 - done_t) * A_{t+1}``, ``R_t = A_t + V_t``.
///
/// To bootstrap a truncated episode, add ``gamma * V(final_obs)`` to its last reward and set its done
/// to 1.
///
/// Parameters
/// ----------
/// rewards, values, dones : ndarray, shape (n,), float64 or float32
///     All of one dtype. ``values[t]`` is V(s_t); ``dones[t]`` is 1 where step t ended its episode.
/// last_value : float
///     V of the observation after the last step.
/// gamma, gae_lambda : float in [0, 1]
/// out : tuple of two ndarrays, optional
///     Written and returned in place of new arrays. They have the results' shape and dtype and share no
///     memory with the inputs or each other. After an error their contents are unspecified.
///
/// Returns
/// -------
/// (advantages, returns) : ndarrays of the inputs' shape and dtype
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, a number out of range, an array not contiguous in C order, a number that is not
///     finite.
/// TypeError
///     An argument that is no array, or has another dtype.
#[pyfunction]
#[pyo3(signature = (rewards, values, dones, last_value, gamma, gae_lambda, *, out=None))]
pub fn compute_gae<'py>(
    rewards: Any<'_, 'py>,
    values: Any<'_, 'py>,
    dones: Any<'_, 'py>,
    last_value: f64,
    gamma: f64,
    gae_lambda: f64,
    out: Option<TwoArrays<'py>>,
) -> PyResult<TwoArrays<'py>> {
    let (columns, numbers) = ([rewards, values, dones], [last_value, gamma, gae_lambda]);
    gae_in(&GAE_ARRAYS, columns, numbers, out.as_ref())
}

/// [`compute_gae`] with its results in arrays of `arrays`; `numbers` are `last_value`, `gamma` and
/// `gae_lambda`.
pub fn gae_in<'py>(
    arrays: &ResultArrays,
    [rewards, values, dones]: [Any<'_, 'py>; 3],
    numbers: [f64; 3],
    out: Out<'_, 'py>,
) -> PyResult<TwoArrays<'py>> {
    fn run<'py, T: Real + Number>(
        arrays: &ResultArrays,
        py: Python<'py>,
        mut rewards: Argument<'_>,
        [values, dones]: [Any<'_, 'py>; 2],
        [last_value, gamma, gae_lambda]: [f64; 3],
        out: Out<'_, 'py>,
    ) -> PyResult<TwoArrays<'py>> {
        let mut crossing = GAE.enter(0);
        let mut out = results::<T, Ix1, 1>(arrays, py, out, &mut rewards)?;
        let values = Argument::new("values", values);
        let dones = Argument::new("dones", dones);
        writing(py, &Unguarded, |(), look| {
            let rewards = look.read::<T, Ix1>(rewards, None)?;
            let values = like(look, values, &rewards)?;
            let dones = like(look, dones, &rewards)?;
            crossing.add_bytes(5 * size_of_val(&rewards[..]));
            gae::compute_gae_into::<Chosen, _>(
                &rewards,
                &values,
                &dones,
                T::from_f64(last_value),
                gamma,
                gae_lambda,
                write(look, &mut out, &rewards)?,
            )
            .map_err(to_py)
        })?;
        Ok(out.map(|array| array.give(py)).into())
    }
    let py = rewards.py();
    let mut first = Argument::new("rewards", rewards);
    match float_type(py, &mut first)? {
        Float::F64 => run::<f64>(arrays, py, first, [values, dones], numbers, out),
        Float::F32 => run::<f32>(arrays, py, first, [values, dones], numbers, out),
    }
}

/// GAE advantages and returns of many environments at once.
///
/// Each environment's results are those of :func:`compute_gae` on its sequence: to the bit if
/// env-major, within rounding if step-major.
///
/// Parameters
/// ----------
/// rewards, values, dones : ndarray, float64 or float32
///     All of one dtype and shape: ``(n_steps, n_envs)`` if ``layout="step_major"``,
///     ``(n_envs, n_steps)`` if ``layout="env_major"``.
/// last_values : ndarray, shape (n_envs,), of the same dtype
///     V of each environment's observation after the last step.
/// gamma, gae_lambda : float in [0, 1]
/// layout : "step_major" or "env_major"
/// out : tuple of two ndarrays, optional
///     Written and returned in place of new arrays. They have the results' shape and dtype and share no
///     memory with the inputs or each other. After an error their contents are unspecified.
///
/// Returns
/// -------
/// (advantages, returns) : ndarrays of the inputs' shape and dtype
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, a number out of range, an unknown layout, an array not contiguous in C order, a
///     number that is not finite.
/// TypeError
///     An argument that is no array, or has another dtype.
#[pyfunction]
#[pyo3(signature = (rewards, values, dones, last_values, gamma, gae_lambda, layout="step_major", *, out=None))]
#[expect(clippy::too_many_arguments, reason = "the paper's inputs")]
pub fn compute_gae_batched<'py>(
    rewards: Any<'_, 'py>,
    values: Any<'_, 'py>,
    dones: Any<'_, 'py>,
    last_values: Any<'_, 'py>,
    gamma: f64,
    gae_lambda: f64,
    layout: &str,
    out: Option<TwoArrays<'py>>,
) -> PyResult<TwoArrays<'py>> {
    fn run<'py, T: Real + Number>(
        py: Python<'py>,
        mut rewards: Argument<'_>,
        [values, dones, last_values]: [Any<'_, 'py>; 3],
        gamma: f64,
        gae_lambda: f64,
        layout: Layout,
        out: Out<'_, 'py>,
    ) -> PyResult<TwoArrays<'py>> {
        let mut crossing = GAE_BATCHED.enter(0);
        let mut out = results::<T, Ix2, 2>(&GAE_BATCHED_ARRAYS, py, out, &mut rewards)?;
        let values = Argument::new("values", values);
        let dones = Argument::new("dones", dones);
        let last_values = Argument::new("last_values", last_values);
        writing(py, &Unguarded, |(), look| {
            let rewards = look.read::<T, Ix2>(rewards, None)?;
            let values = like(look, values, &rewards)?;
            let dones = like(look, dones, &rewards)?;
            let n_envs = match layout {
                Layout::StepMajor => rewards.shape()[1],
                Layout::EnvMajor => rewards.shape()[0],
            };
            let last_values = look.read::<T, Ix1>(last_values, Some(&[n_envs]))?;
            crossing.add_bytes(5 * size_of_val(&rewards[..]) + size_of_val(&last_values[..]));
            gae::compute_gae_batched_into::<Chosen, _>(
                &rewards,
                &values,
                &dones,
                &last_values,
                gamma,
                gae_lambda,
                layout,
                write(look, &mut out, &rewards)?,
            )
            .map_err(to_py)
        })?;
        Ok(out.map(|array| array.give(py)).into())
    }
    let layout = match layout {
        "step_major" => Layout::StepMajor,
        "env_major" => Layout::EnvMajor,
        _ => {
            return Err(PyValueError::new_err(format!(
                "layout: is {layout:?}, expected \"step_major\" or \"env_major\""
            )));
        }
    };
    let py = rewards.py();
    let mut first = Argument::new("rewards", rewards);
    let (others, out) = ([values, dones, last_values], out.as_ref());
    match float_type(py, &mut first)? {
        Float::F64 => run::<f64>(py, first, others, gamma, gae_lambda, layout, out),
        Float::F32 => run::<f32>(py, first, others, gamma, gae_lambda, layout, out),
    }
}

/// V-trace value targets and policy-gradient advantages of one sequence of n steps.
///
/// Espeholt et al. 2018, equation 1 and section 4.2, with ``rho_t = min(rho_bar, exp(log_rho_t))``,
/// ``c_t = min(c_bar, exp(log_rho_t))`` and ``gamma_t = gamma * (1 - done_t)``:
/// ``vs_t = V_t + rho_t * (r_t + gamma_t * V_{t+1} - V_t) + gamma_t * c_t * (vs_{t+1} - V_{t+1})``,
/// ``A_t = rho_t * (r_t + gamma_t * vs_{t+1} - V_t)``.
///
/// Parameters
/// ----------
/// log_rhos, rewards, values, dones : ndarray, shape (n,), float64 or float32
///     All of one dtype. ``log_rhos`` are log pi(a|s) - log mu(a|s) of the learner's policy pi and
///     the behaviour policy mu; they may be infinite where the weights are clipped. ``dones[t]`` is 1
///     where step t ended its episode.
/// last_value : float
///     V of the observation after the last step.
/// gamma : float in [0, 1]
/// rho_bar, c_bar : float, at least 0
///     The largest importance weights; infinity clips nothing. The paper assumes rho_bar >= c_bar.
/// out : tuple of two ndarrays, optional
///     Written and returned in place of new arrays. They have the results' shape and dtype and share no
///     memory with the inputs or each other. After an error their contents are unspecified.
///
/// Returns
/// -------
/// (vs, pg_advantages) : ndarrays of the inputs' shape and dtype
///
/// Raises
/// ------
/// ValueError
///     A wrong shape, a number out of range, an array not contiguous in C order, a number that is not
///     finite.
/// TypeError
///     An argument that is no array, or has another dtype.
#[pyfunction]
#[pyo3(signature = (log_rhos, rewards, values, dones, last_value, gamma, rho_bar=1.0, c_bar=1.0, *, out=None))]
#[expect(clippy::too_many_arguments, reason = "the paper's inputs")]
pub fn compute_vtrace<'py>(
    log_rhos: Any<'_, 'py>,
    rewards: Any<'_, 'py>,
    values: Any<'_, 'py>,
    dones: Any<'_, 'py>,
    last_value: f64,
    gamma: f64,
    rho_bar: f64,
    c_bar: f64,
    out: Option<TwoArrays<'py>>,
) -> PyResult<TwoArrays<'py>> {
    fn run<'py, T: Real + Number>(
        py: Python<'py>,
        mut log_rhos: Argument<'_>,
        [rewards, values, dones]: [Any<'_, 'py>; 3],
        last_value: f64,
        gamma: f64,
        rho_bar: f64,
        c_bar: f64,
        out: Out<'_, 'py>,
    ) -> PyResult<TwoArrays<'py>> {
        let mut crossing = VTRACE.enter(0);
        let mut out = results::<T, Ix1, 1>(&VTRACE_ARRAYS, py, out, &mut log_rhos)?;
        let rewards = Argument::new("rewards", rewards);
        let values = Argument::new("values", values);
        let dones = Argument::new("dones", dones);
        writing(py, &Unguarded, |(), look| {
            let log_rhos = look.read::<T, Ix1>(log_rhos, None)?;
            let rewards = like(look, rewards, &log_rhos)?;
            let values = like(look, values, &log_rhos)?;
            let dones = like(look, dones, &log_rhos)?;
            crossing.add_bytes(6 * size_of_val(&rewards[..]));
            vtrace::compute_vtrace_into::<Chosen, _>(
                &log_rhos,
                &rewards,
                &values,
                &dones,
                T::from_f64(last_value),
                gamma,
                rho_bar,
                c_bar,
                write(look, &mut out, &rewards)?,
            )
            .map_err(to_py)
        })?;
        Ok(out.map(|array| array.give(py)).into())
    }
    let py = log_rhos.py();
    let mut first = Argument::new("log_rhos", log_rhos);
    let (others, out) = ([rewards, values, dones], out.as_ref());
    match float_type(py, &mut first)? {
        Float::F64 => run::<f64>(py, first, others, last_value, gamma, rho_bar, c_bar, out),
        Float::F32 => run::<f32>(py, first, others, last_value, gamma, rho_bar, c_bar, out),
    }
}

/// The array `value`, which must have the dtype and shape of `first`.
fn like<'x, T: Number, D: Dimension + 'x>(
    look: &'x Writing<'_>,
    value: Argument<'x>,
    first: &Looked<'_, T, D>,
) -> PyResult<Looked<'x, T, D>> {
    look.read(value, Some(first.shape()))
}

/// The arrays that the two results are written to: `out`, or those of `arrays` in the shape of `first`.
fn results<T: Real + Number, D: Dimension, const N: usize>(
    arrays: &ResultArrays,
    py: Python<'_>,
    out: Out<'_, '_>,
    first: &mut Argument<'_>,
) -> PyResult<[Output; 2]> {
    if let Some((one, other)) = out {
        return Ok([Output::given("out[0]", one), Output::given("out[1]", other)]);
    }
    let shape = shape_of::<T, D, N>(py, first)?;
    let take = || arrays.take::<T, D, N>(py, shape);
    Ok([take()?, take()?])
}

/// Both arrays as slices to be written to. They must have the dtype and shape of `like`.
fn write<'x, T: Number, D: Dimension>(
    look: &'x Writing<'_>,
    [first, second]: &'x mut [Output; 2],
    like: &Looked<'_, T, D>,
) -> PyResult<(&'x mut [T], &'x mut [T])> {
    Ok((
        look.write::<T, D>(first, like.shape())?,
        look.write::<T, D>(second, like.shape())?,
    ))
}
