//! P18's baseline: step by step, in either of P9's loops.

use crate::Real;
use crate::training::{TrainingWiring, vtrace};

/// Writes the value targets and the policy-gradient advantages of one sequence. All slices have
/// `vs.len()` elements.
///
/// A reward, value or done that is not finite makes `vs[0]` not finite, by which the caller notices it.
/// Every other form of this function must do so, too.
#[expect(clippy::too_many_arguments, reason = "the paper's inputs and results")]
pub fn targets<W: TrainingWiring, T: Real>(
    log_rhos: &[T],
    rewards: &[T],
    values: &[T],
    dones: &[T],
    last_value: T,
    gamma: T,
    rho_bar: T,
    c_bar: T,
    vs: &mut [T],
    pg_advantages: &mut [T],
) {
    let loop_over_steps = if W::P9 {
        vtrace::optimized::targets
    } else {
        vtrace::baseline::targets
    };
    loop_over_steps(
        log_rhos,
        rewards,
        values,
        dones,
        last_value,
        gamma,
        rho_bar,
        c_bar,
        vs,
        pg_advantages,
    );
}
