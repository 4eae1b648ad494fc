"""The steps of `peers backends` in plain NumPy, float64, for comparison with every backend.

Equations: the chain rule for linear layers with one activation between them; Adam, Kingma and Ba
2015, algorithm 1; DQN's loss, Mnih et al. 2015; PPO's, Schulman et al. 2017, equations 7 and 9;
the squashed Gaussian, Haarnoja et al. 2018b, appendix C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# float32 against float64, after one step of Adam. Gradients below its eps are damped, so rounding
# cannot reverse a step.
BOUNDS = (1e-4, 1e-5)


class Net:
    """A network with float64 parameters, flat as in `inputs.params`."""

    def __init__(self, given: ModuleType, widths: Sequence[int], relu: bool, start: int) -> None:
        self.params: Array = np.asarray(given.params(widths, start), np.float64)
        self._widths, self._relu = widths, relu
        self._inputs: list[Array] = []

    def _layers(self) -> list[tuple[Array, Array, slice]]:
        found, at = [], 0
        for n_in, n_out in zip(self._widths[:-1], self._widths[1:], strict=True):
            end = at + (n_in + 1) * n_out
            weight = self.params[at : at + n_in * n_out].reshape(n_out, n_in)
            found.append((weight, self.params[at + n_in * n_out : end], slice(at, end)))
            at = end
        return found

    def forward(self, x: Array) -> Array:
        """Outputs `[rows, out]`; the layers' inputs are kept for `gradient`."""
        self._inputs = []
        layers = self._layers()
        for number, (weight, bias, _) in enumerate(layers):
            self._inputs.append(x)
            x = x @ weight.T + bias
            if number + 1 < len(layers):
                x = np.maximum(x, 0) if self._relu else np.tanh(x)
        return x

    def gradient(self, by_output: Array) -> Array:
        """The gradient with respect to the parameters, of the last `forward`."""
        found = np.empty_like(self.params)
        delta = by_output
        for (weight, _, place), x in zip(
            reversed(self._layers()), reversed(self._inputs), strict=True
        ):
            found[place] = np.concatenate([(delta.T @ x).reshape(-1), delta.sum(axis=0)])
            below = delta @ weight
            delta = below * ((x > 0) if self._relu else 1 - x**2)
        return found


def _first_step(given: ModuleType, params: Array, gradient: Array) -> Array:
    """Adam's first step, whose corrected means are the gradient and its square."""
    moved: Array = params - given.LR * gradient / (np.abs(gradient) + given.EPS)
    return moved


def _wide(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: x if name == "actions" else np.asarray(x, np.float64) for name, x in columns.items()
    }


def dqn_step(given: ModuleType) -> dict[str, Array]:
    """Parameters after one step."""
    batch = _wide(given.minibatch())
    q, target = (Net(given, given.Q_NET, True, start) for start in (0, given.SECOND))
    y = batch["rewards"] + batch["discounts"] * target.forward(batch["next_obs"]).max(axis=1)
    found, rows = q.forward(batch["obs"]), np.arange(len(y))
    by_output = np.zeros_like(found)
    by_output[rows, batch["actions"]] = 2 * (found[rows, batch["actions"]] - y) / len(y)
    return {"params": _first_step(given, q.params, q.gradient(by_output))}


def ppo_step(given: ModuleType) -> dict[str, Array]:
    """Parameters of actor and critic after one step."""
    batch = _wide(given.minibatch())
    actor = Net(given, given.Q_NET, False, 0)
    critic = Net(given, given.VALUE_NET, False, given.SECOND)
    n = len(batch["actions"])
    chosen = np.eye(2)[batch["actions"]]
    a = batch["advantages"]
    a = (a - a.mean()) / (a.std(ddof=1) + 1e-8)
    logits = actor.forward(batch["obs"])
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    p = np.exp(log_p)
    ratio = np.exp((log_p * chosen).sum(axis=1) - batch["log_probs"])
    bounded = np.clip(ratio, 1 - given.CLIP_RANGE, 1 + given.CLIP_RANGE)
    moves = (ratio * a < bounded * a) | (ratio == bounded)
    by_log_prob = -np.where(moves, ratio * a, 0.0) / n
    entropy = -(p * log_p).sum(axis=1, keepdims=True)
    by_logits = by_log_prob[:, None] * (chosen - p)
    by_logits += given.ENT_COEF / n * p * (log_p + entropy)
    by_value = 2 * given.VF_COEF * (critic.forward(batch["obs"])[:, 0] - batch["returns"]) / n
    return {
        "params": np.concatenate(
            [
                _first_step(given, actor.params, actor.gradient(by_logits)),
                _first_step(given, critic.params, critic.gradient(by_value[:, None])),
            ]
        )
    }


def sac_sample(given: ModuleType) -> dict[str, Array]:
    """The action and its log-probability."""
    obs, noise = (np.asarray(x, np.float64) for x in given.draw())
    mean, log_std = np.split(Net(given, given.ACTOR, True, 0).forward(obs), 2, axis=1)
    action = np.tanh(mean + np.exp(np.clip(log_std, -20, 2)) * noise)
    gaussian = -0.5 * noise**2 - np.clip(log_std, -20, 2) - 0.5 * np.log(2 * np.pi)
    return {"action": action, "log_prob": gaussian - np.log(1 - action**2)}


def critic_step(given: ModuleType) -> dict[str, Array]:
    """Parameters of both critics after one step."""
    x, y = (np.asarray(column, np.float64) for column in given.critic_batch())
    moved = []
    for start in (0, given.SECOND):
        critic = Net(given, given.CRITIC, True, start)
        by_output = (critic.forward(x) - y[:, None]) / len(y)
        moved.append(_first_step(given, critic.params, critic.gradient(by_output)))
    return {"params": np.concatenate(moved)}


def layer(given: ModuleType) -> dict[str, Array]:
    """Outputs."""
    net = Net(given, given.LAYER, True, 0)
    return {"outputs": net.forward(np.asarray(given.layer_rows(), np.float64))}


STEPS: dict[str, Callable[[ModuleType], dict[str, Array]]] = {
    step.__name__: step for step in (dqn_step, ppo_step, sac_sample, critic_step, layer)
}
