"""The equations in plain NumPy: slow, and short enough to be compared with the papers.

The functions of :mod:`rlox.advantage` are tested against these, and have the same arguments and
results.
"""

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]


def compute_gae(
    rewards: _Array,
    values: _Array,
    dones: _Array,
    last_value: float | _Array,
    gamma: float,
    gae_lambda: float,
) -> tuple[_Array, _Array]:
    """Schulman et al. 2016, equations 11, 12 and 16. Further axes after the steps are a batch."""
    advantages = np.zeros_like(rewards)
    next_value, advantage = last_value, np.zeros(rewards.shape[1:])
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * (1 - dones[t]) * next_value - values[t]
        advantage = delta + gamma * gae_lambda * (1 - dones[t]) * advantage
        advantages[t] = advantage
        next_value = values[t]
    return advantages, advantages + values


def compute_vtrace(
    log_rhos: _Array,
    rewards: _Array,
    values: _Array,
    dones: _Array,
    last_value: float,
    gamma: float,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
) -> tuple[_Array, _Array]:
    """Espeholt et al. 2018, equation 1 as the sum that it is, and the advantages of section 4.2."""
    n = len(rewards)
    rho = np.minimum(rho_bar, np.exp(log_rhos))
    c = np.minimum(c_bar, np.exp(log_rhos))
    discount = gamma * (1 - dones)
    delta = rho * (rewards + discount * np.append(values, last_value)[1:] - values)
    vs = values.copy()
    for s in range(n):
        weight = 1.0
        for t in range(s, n):
            vs[s] += weight * delta[t]
            weight *= discount[t] * c[t]
    pg_advantages = rho * (rewards + discount * np.append(vs, last_value)[1:] - values)
    return vs, pg_advantages


def compute_token_kl(
    log_probs_policy: _Array, log_probs_ref: _Array, mask: NDArray[np.bool_] | None = None
) -> _Array:
    """Schulman 2020, the estimator k3, summed over the tokens that count."""
    d = log_probs_ref - log_probs_policy
    k3 = np.exp(d) - d - 1
    total: _Array = np.sum(k3, axis=1, where=True if mask is None else mask)
    return total


def compute_group_advantages(rewards: _Array, group_size: int, epsilon: float = 1e-8) -> _Array:
    """Shao et al. 2024, section 4.1.2, with the population standard deviation."""
    groups = rewards.reshape(-1, group_size)
    mean, std = groups.mean(axis=1, keepdims=True), groups.std(axis=1, keepdims=True)
    advantages: _Array = ((groups - mean) / (std + epsilon)).reshape(-1)
    return advantages
