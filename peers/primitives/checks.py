"""Checks an engine's results against plain NumPy written from the equations, before `rlox-opt
peers` times the engine.

float64 agrees within rtol 1e-6 and atol 1e-10. If an engine computes in float32, the reference is
computed in float64 from its float32 inputs, and the bounds are those of float32. Draws are random,
so every column of a drawn row is compared with the transition that the row claims to be.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlox_opt.race.primitives.cases import Answer, Case, Size, WrongError
from rlox_opt.system import plugins

_HERE = Path(__file__).parent
networks = plugins.load(_HERE / "networks.py")

RTOL, ATOL = 1e-6, 1e-10
_FLOAT32 = (1e-4, 1e-4)
_PHYSICS = (1e-5, 1e-5)
_SIGMAS = 6.0  # a fair draw deviates more only once in 500 million times


def check(case: Case, answer: Answer) -> None:
    """Raises WrongError if `answer`, one call's results by name, is wrong."""
    if case.family in networks.STEPS:
        _network(answer, case.family)
    else:
        _CHECKS[case.family](answer, case.size)


def inputs() -> ModuleType:
    """The inputs of every engine: a module of the engines, which needs NumPy alone."""
    return plugins.load(_HERE / "inputs.py")


def reference() -> ModuleType:
    """The equations for the comparison, in plain NumPy."""
    return plugins.load(_HERE / "equations.py")


def _close(name: str, found: Any, expected: Any, bounds: tuple[float, float]) -> None:
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if found.shape != expected.shape:
        raise WrongError(f"{name} has shape {found.shape}, expected {expected.shape}")
    rtol, atol = bounds
    wrong = ~np.isclose(found, expected, rtol, atol)
    if wrong.any():
        most = np.abs(found - expected)[wrong].max()
        raise WrongError(f"{name} is off by {most:.2g} in {wrong.mean():.2%} of its elements")


def _bounds(size: Size) -> tuple[float, float]:
    return _FLOAT32 if size.get("dtype") == "float32" else (RTOL, ATOL)


def _equal(answer: Answer, names: tuple[str, ...], expected: Any, size: Size) -> None:
    for name, one in zip(names, expected, strict=True):
        _close(name, answer[name], one, _bounds(size))


def _wide(columns: tuple[NDArray[Any], ...]) -> list[NDArray[np.float64]]:
    return [np.asarray(column, np.float64) for column in columns]


def _gae(answer: Answer, size: Size) -> None:
    shape = [size["n"]] if "n" in size else [size["n_steps"], size["n_envs"]]
    rewards, values, dones, last = _wide(
        inputs().rollout(*shape, dtype=size.get("dtype", "float64"))
    )
    given = inputs()
    expected = reference().compute_gae(rewards, values, dones, last, given.GAMMA, given.GAE_LAMBDA)
    _equal(answer, ("advantages", "returns"), expected, size)


def _vtrace(answer: Answer, size: Size) -> None:
    """Espeholt et al. 2018, remark 1: the recursion."""
    given, n, dtype = inputs(), int(size["n"]), size["dtype"]
    rewards, values, dones, last = _wide(given.rollout(n, dtype=dtype))
    rho = np.minimum(1.0, np.exp(np.asarray(given.log_rhos(n, dtype), np.float64)))
    vs, advantages = np.empty(n), np.empty(n)
    next_value = next_vs = float(last)
    for s in reversed(range(n)):
        discount = given.GAMMA * (1 - dones[s])
        delta = rho[s] * (rewards[s] + discount * next_value - values[s])
        vs[s] = values[s] + delta + discount * rho[s] * (next_vs - next_value)
        advantages[s] = rho[s] * (rewards[s] + discount * next_vs - values[s])
        next_value, next_vs = values[s], vs[s]
    _equal(answer, ("vs", "pg_advantages"), (vs, advantages), size)


def _token_kl(answer: Answer, size: Size) -> None:
    policy, ref = _wide(inputs().log_probs(size["rows"], size["tokens"], size["dtype"]))
    _equal(answer, ("kl",), (reference().compute_token_kl(policy, ref),), size)


def _group_advantages(answer: Answer, size: Size) -> None:
    rewards = inputs().group_rewards(size["groups"], size["size"])
    expected = reference().compute_group_advantages(rewards, int(size["size"]))
    _equal(answer, ("advantages",), (expected,), size)


def _rows(answer: Answer, n: int, obs_dim: int) -> NDArray[np.int64]:
    """Which of the first `n` transitions were drawn. The first 256 rows must be complete ones."""
    rewards = answer["reward"].reshape(-1)
    numbers = np.rint(rewards).astype(np.int64)
    if ((numbers < 0) | (numbers >= n) | (numbers != rewards)).any():
        raise WrongError(f"reward is {rewards.min()} to {rewards.max()}, expected 0 to {n - 1}")
    names = ("obs", "next_obs", "action", "reward", "terminated")
    # Row by row, since wide rows would take gigabytes all at once.
    for row, number in enumerate(numbers[:256]):
        columns = inputs().transitions(number, number + 1, obs_dim)
        for name, expected in zip(names, columns, strict=False):
            found = answer[name].reshape(len(numbers), -1)[row]
            if (found != expected.reshape(-1)).any():
                raise WrongError(f"{name} of transition {number} is another one's")
    return numbers


def _stored(answer: Answer, size: Size) -> None:
    _rows(answer, _KNOWN, int(size["obs_dim"]))


def _uniform(answer: Answer, size: Size) -> None:
    obs_dim = int(size["obs_dim"])
    n = inputs().capacity(obs_dim)
    numbers = _rows(answer, n, obs_dim)
    _fair(numbers.mean() / (n - 1), 0.5, (1 / 12 / len(numbers)) ** 0.5)


def _prioritized(answer: Answer, size: Size) -> None:
    """Schaul et al. 2016: P(i) from p^alpha; weights by beta, relative to the buffer's largest."""
    n = int(size["capacity"])
    numbers = _rows(answer, n, 4)
    p = inputs().priorities(n) ** 0.6
    p /= p.sum()
    weights = (p / p.min()) ** -0.4
    _close("weights", answer["weights"].reshape(-1), weights[numbers], _FLOAT32)
    mean = (p * np.arange(n)).sum()
    sigma = ((p * (np.arange(n) - mean) ** 2).sum() / len(numbers)) ** 0.5
    _fair(numbers.mean(), mean, sigma)


def _fair(found: float, expected: float, sigma: float) -> None:
    if abs(found - expected) > _SIGMAS * sigma:
        raise WrongError(f"draws have a mean index of {found:.4g}, expected {expected:.4g}")


def _env_step(answer: Answer, _: Size) -> None:
    """Barto, Sutton and Anderson 1983, by Euler's method, as Gymnasium has it."""
    obs = np.asarray(answer["obs"], np.float64)
    dones = np.asarray(answer["dones"], np.bool_)
    rewards = np.asarray(answer["rewards"], np.float64)
    steps = min(len(obs) - 1, len(answer["actions"]))
    fresh = np.zeros(dones.shape[1], np.bool_)  # some engines reset in the step after the last one
    moved = 0
    for t in range(steps):
        expected = _cart_pole(obs[t], np.asarray(answer["actions"])[t])
        going = ~dones[t] & ~fresh
        _close("obs", obs[t + 1][going], expected[going], _PHYSICS)
        _close("rewards", rewards[t][going], np.ones(going.sum()), _PHYSICS)
        x, theta = np.abs(expected[:, 0]), np.abs(expected[:, 2])
        beyond = np.maximum(x / 2.4, theta / (12 * np.pi / 180)) > 1
        if (beyond != dones[t])[~fresh].any():
            raise WrongError("dones: an episode ends where it should not, or does not end")
        fresh = dones[t] & ~fresh
        moved += int(going.sum())
    if moved < steps * dones.shape[1] // 2:
        raise WrongError(f"obs: only {moved} steps of {steps * dones.shape[1]} are not resets")


def _cart_pole(obs: NDArray[np.float64], actions: NDArray[Any]) -> NDArray[np.float64]:
    """The state after 0.02 s of a push of 10 N in either direction, from `obs`, `[n_envs, 4]`."""
    _, x_dot, theta, theta_dot = obs.T
    force = np.where(actions == 1, 10.0, -10.0)
    sin, cos = np.sin(theta), np.cos(theta)
    pushed = (force + 0.05 * theta_dot**2 * sin) / 1.1
    theta_acc = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    x_acc = pushed - 0.05 * theta_acc * cos / 1.1
    moved = (x_dot, x_acc, theta_dot, theta_acc)
    return obs + 0.02 * np.stack(moved, axis=1)


def _rollout(answer: Answer, size: Size) -> None:
    shape = (size["n_steps"], size["n_envs"])
    values = inputs().values(int(shape[0]) + 1, shape[1])
    rewards, dones = (np.asarray(answer[name], np.float64) for name in ("rewards", "dones"))
    for name in ("rewards", "dones"):
        if answer[name].shape != shape:
            raise WrongError(f"{name} has shape {answer[name].shape}, expected {shape}")
    given = inputs()
    expected = reference().compute_gae(
        rewards,
        np.asarray(values[:-1], np.float64),
        dones,
        np.asarray(values[-1], np.float64),
        given.GAMMA,
        given.GAE_LAMBDA,
    )
    for name, one in zip(("advantages", "returns"), expected, strict=True):
        _close(name, answer[name], one, _FLOAT32)
    _env_step(answer, size)


def _network(answer: Answer, step: str) -> None:
    expected = networks.STEPS[step](inputs())
    for name, found in answer.items():
        _close(name, found, expected[name], networks.BOUNDS)


_KNOWN = 128  # transitions in the buffer that a push is checked in
_CHECKS: dict[str, Callable[[Answer, Size], None]] = {
    "gae": _gae,
    "gae_batched": _gae,
    "vtrace": _vtrace,
    "token_kl": _token_kl,
    "group_advantages": _group_advantages,
    "push": _stored,
    "push_batch": _stored,
    "sample": _uniform,
    "per_sample": _prioritized,
    "env_step": _env_step,
    "rollout": _rollout,
}
