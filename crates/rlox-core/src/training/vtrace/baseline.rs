//! P9's baseline: the inner loop computes `exp(log_rho)` twice, for rho and for c.

use crate::Real;

/// Writes the value targets and the policy-gradient advantages of one sequence. All slices have
/// `vs.len()` elements.
///
/// A reward, value or done that is not finite makes `vs[0]` not finite, by which the caller notices it.
/// Every other form of this function must do so, too.
#[expect(
    clippy::too_many_arguments,
    reason = "the paper's inputs, checked by the caller"
)]
pub fn targets<T: Real>(
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
    let n = vs.len();
    let mut correction = T::zero(); // vs_{t+1} - V(s_{t+1})
    for t in (0..n).rev() {
        let rho = rho_bar.min(log_rhos[t].exp());
        let c = c_bar.min(log_rhos[t].exp());
        let (next_value, next_vs) = if t == n - 1 {
            (last_value, last_value)
        } else {
            (values[t + 1], vs[t + 1])
        };
        let discount = gamma * (T::one() - dones[t]);
        let delta = rho * (rewards[t] + discount * next_value - values[t]);
        correction = delta + discount * c * correction;
        vs[t] = values[t] + correction;
        pg_advantages[t] = rho * (rewards[t] + discount * next_vs - values[t]);
    }
}
