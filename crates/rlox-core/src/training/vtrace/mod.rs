//! V-trace: off-policy value targets and policy-gradient advantages (Espeholt et al. 2018,
//! equation 1 and section 4.2).
//!
//! ```text
//! rho_t   = min(rho_bar, exp(log_rho_t))        c_t = min(c_bar, exp(log_rho_t))
//! delta_t = rho_t * (r_t + gamma_t * V(s_{t+1}) - V(s_t))       gamma_t = gamma * (1 - done_t)
//! vs_t    = V(s_t) + delta_t + gamma_t * c_t * (vs_{t+1} - V(s_{t+1}))
//! A_t     = rho_t * (r_t + gamma_t * vs_{t+1} - V(s_t))
//! ```
//!
//! with `vs_n = V(s_n) = last_value`.

pub mod baseline;
pub mod blocks;
pub mod optimized;

use super::{TrainingWiring, check_unit_interval, not_finite};
use crate::Real;
use crate::error::{RloxError, check_len};
use crate::memory::{reserved, zeros};
use crate::simd::{Instructions, kernel};

/// Value targets `vs` and advantages of one sequence of `n` steps.
///
/// `log_rhos` are log pi(a|s) - log mu(a|s). Minus infinity, for an action that the learner's policy
/// never takes, is a weight of zero.
///
/// # Errors
/// If the lengths differ, `gamma` is outside [0, 1], `rho_bar` or `c_bar` is negative or NaN, an input is
/// not finite (for `log_rhos`: is NaN), or there is no memory.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs")]
pub fn compute_vtrace<W: TrainingWiring, T: Real>(
    log_rhos: &[T],
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: f64,
    rho_bar: f64,
    c_bar: f64,
) -> Result<(Vec<T>, Vec<T>), RloxError> {
    let n = rewards.len();
    let (mut vs, mut pg_advantages) = (zeros(n)?, zeros(n)?);
    compute_vtrace_into::<W, T>(
        log_rhos,
        rewards,
        values,
        dones,
        last_value,
        gamma,
        rho_bar,
        c_bar,
        (&mut vs, &mut pg_advantages),
    )?;
    Ok((vs, pg_advantages))
}

/// [`compute_vtrace`] that writes the results to slices of the inputs' length. After an error their
/// contents are unspecified.
///
/// # Errors
/// As [`compute_vtrace`], and if a slice has another length.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub fn compute_vtrace_into<W: TrainingWiring, T: Real>(
    log_rhos: &[T],
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: f64,
    rho_bar: f64,
    c_bar: f64,
    (vs, pg_advantages): (&mut [T], &mut [T]),
) -> Result<(), RloxError> {
    check_unit_interval("gamma", gamma)?;
    for (argument, level) in [("rho_bar", rho_bar), ("c_bar", c_bar)] {
        if level.is_nan() || level < 0.0 {
            return Err(RloxError::argument(
                argument,
                format!("is {level}, expected a number of at least 0"),
            ));
        }
    }
    for (argument, length) in [
        ("log_rhos", log_rhos.len()),
        ("values", values.len()),
        ("dones", dones.len()),
        ("vs", vs.len()),
        ("pg_advantages", pg_advantages.len()),
    ] {
        check_len(argument, length, rewards.len())?;
    }
    // The minimum with `rho_bar` or `c_bar` would hide a NaN, so the results would not show it.
    if any_nan(log_rhos) {
        let index = log_rhos.iter().position(|log_rho| log_rho.is_nan());
        return Err(RloxError::argument(
            "log_rhos",
            format!(
                "is NaN at index {}, expected numbers",
                index.unwrap_or_default()
            ),
        ));
    }

    let twin = if W::P18 {
        blocks::optimized::targets::<W, T>
    } else {
        blocks::baseline::targets::<W, T>
    };
    twin(
        log_rhos,
        rewards,
        values,
        dones,
        last_value,
        T::from_f64(gamma),
        T::from_f64(rho_bar),
        T::from_f64(c_bar),
        vs,
        pg_advantages,
    );
    if vs.first().is_none_or(|first| first.is_finite()) {
        return Ok(());
    }
    // The error must not name minus infinity, which is allowed, so a finite number takes its place.
    let lowest = T::min_value();
    let mut finite = reserved(log_rhos.len())?;
    finite.extend(log_rhos.iter().map(|&rho| rho.max(lowest)));
    let log_rhos: Vec<T> = finite;
    let inputs: [(_, &[T]); 5] = [
        ("rewards", rewards),
        ("values", values),
        ("dones", dones),
        ("last_value", &[last_value]),
        ("log_rhos", &log_rhos),
    ];
    let bar = T::from_f64(rho_bar.max(c_bar));
    let unclipped = |log_rho: &T| bar.min(log_rho.exp()).is_infinite();
    match log_rhos.iter().position(unclipped) {
        Some(index) if inputs.iter().all(|(_, values)| all_finite(values)) => {
            Err(RloxError::argument(
                "log_rhos",
                format!(
                    "is {} at index {index}, whose exponential overflows; pass a finite rho_bar and \
                     c_bar",
                    log_rhos[index]
                ),
            ))
        }
        _ => Err(not_finite(&inputs)),
    }
}

fn all_finite<T: Real>(values: &[T]) -> bool {
    values.iter().all(|value| value.is_finite())
}

kernel! {
    /// Whether any of the values is NaN. The loop goes through all values, since it can be vectorised
    /// only if it does not end at the first NaN.
    fn any_nan<T: Real>(values: &[T]) -> bool = any_nan_body;
}

#[inline(always)]
fn any_nan_body<I: Instructions, T: Real>(values: &[T]) -> bool {
    let mut found = false;
    for value in values {
        found |= value.is_nan();
    }
    found
}

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
