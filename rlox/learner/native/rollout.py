"""PPO's rollouts in one call into Rust, where policy and environments allow it.

Environments, both networks, sampling and advantages run there with the interpreter let go of. What
qualifies: built-in environments, and a `CategoricalActorCritic` or `GaussianActorCritic` whose actor
and critic are float32 `nn.Sequential`s on the CPU, of `nn.Linear` with `nn.Tanh` or with `nn.ReLU`
in between. Everything else is collected by torch; `PPO.rollout_path` tells.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox import _core
from rlox.env import VecEnv
from rlox.env.native_backend import NativeBackend
from rlox.learner.callbacks import BaseCallback
from rlox.learner.policies import ActorCritic, CategoricalActorCritic, GaussianActorCritic

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO

ACTIVATIONS = {nn.Tanh: "tanh", nn.ReLU: "relu"}


class Network(NamedTuple):
    """A multilayer perceptron as Rust takes it."""

    widths: list[int]
    activation: str
    layers: list[nn.Linear]

    def arguments(self) -> tuple[list[int], str, NDArray[np.float32]]:
        """With its parameters as they are now; no copy if they lie one after the other."""
        params = [p.detach() for layer in self.layers for p in (layer.weight, layer.bias)]
        return self.widths, self.activation, _flat(params).numpy()


class NativeRollouts:
    """Collects for one trainer, with a stream of random numbers of its own."""

    def __init__(self, model: "PPO") -> None:
        self.model = model
        self.seed = model._new_seed()
        self.collected = 0

    def possible(self) -> bool:
        """Whether the trainer's policy and environments qualify as they are now."""
        model = self.model
        return (
            model.device.type == "cpu"
            and type(model.env) is VecEnv
            and isinstance(model.env.backend, NativeBackend)
            and _networks(model.policy) is not None
        )

    def collect(self) -> tuple[Tensor, ...] | None:
        """The columns of a `rlox.learner.ppo.Rollout`, step-major; None if a callback stops.

        The next rollout starts where this one ends. `on_step` is called n_steps times once it is
        there, with the trainer's counters as they were after each step.
        """
        model = self.model
        assert isinstance(model.env, VecEnv)
        assert isinstance(model.env.backend, NativeBackend)
        networks = _networks(model.policy)
        assert networks is not None
        actor, critic, log_std = networks
        with model.timing.add_time("native_rollout"):
            columns = _core.collect_rollout(
                model.env.backend.core,
                actor.arguments(),
                critic.arguments(),
                log_std.detach().numpy(),
                model.n_steps,
                model.gamma,
                model.gae_lambda,
                stream=(self.seed, self.collected),
                running=(model._running_return, model._running_length),
            )
        self.collected += 1
        with model.timing.add_time("store"):
            obs = columns["obs"]
            model._last_obs = obs[-1].copy()
            go_on = self._count(
                columns["episode_steps"],
                columns["episode_rewards"].tolist(),
                columns["episode_lengths"].tolist(),
            )
            if not go_on:
                return None
            arrays = (
                obs[:-1],
                columns["actions"],
                columns["log_probs"],
                columns["advantages"],
                columns["returns"],
            )
            return tuple(torch.from_numpy(array).flatten(0, 1) for array in arrays)

    def _count(self, steps: NDArray[np.int64], returns: list[float], lengths: list[int]) -> bool:
        """Book the rollout's steps and the episodes that ended in it; False if a callback stops."""
        model, callbacks = self.model, self.model._callback.callbacks
        if not any(_is_own(callback.on_step, BaseCallback.on_step) for callback in callbacks):
            model.num_timesteps += model.n_steps * model.n_envs
            model.episode_returns += returns
            model.episode_lengths += lengths
            return True
        ends = np.searchsorted(steps, np.arange(model.n_steps), side="right")
        start = 0
        for end in ends.tolist():
            model.num_timesteps += model.n_envs
            model.episode_returns += returns[start:end]
            model.episode_lengths += lengths[start:end]
            start = end
            if not model._callback.on_step():
                return False
        return True


def _networks(policy: ActorCritic) -> tuple[Network, Network, Tensor] | None:
    """Actor, critic and log_std of a policy that is what Rust takes it for, else None."""
    for known in (CategoricalActorCritic, GaussianActorCritic):
        if isinstance(policy, known):
            break
    else:
        return None
    if _is_own(policy.get_action_and_logprob, known.get_action_and_logprob):
        return None
    if _is_own(policy.get_value, known.get_value):
        return None
    actor, critic = _network(policy.actor), _network(policy.critic)
    log_std = getattr(policy, "log_std", torch.empty(0))
    if actor is None or critic is None or not _is_plain(log_std):
        return None
    return actor, critic, log_std


def _network(net: nn.Module) -> Network | None:
    """`net` if it is a plain multilayer perceptron, else None."""
    if type(net) is not nn.Sequential or len(net) % 2 == 0:
        return None
    layers, between = list(net)[::2], list(net)[1::2]
    kinds = {type(module) for module in between} or {nn.Tanh}
    if len(kinds) > 1 or not kinds.issubset(ACTIVATIONS):
        return None
    # Hooks are Python that the user wants to run.
    if any(module._forward_hooks or module._forward_pre_hooks for module in (net, *net)):
        return None
    linears = [layer for layer in layers if type(layer) is nn.Linear]
    if len(linears) < len(layers):
        return None
    if not all(_is_plain(layer.weight) and _is_plain(layer.bias) for layer in linears):
        return None
    widths = [linears[0].in_features, *(layer.out_features for layer in linears)]
    return Network(widths, ACTIVATIONS[kinds.pop()], linears)


def _is_plain(tensor: Tensor | None) -> bool:
    return (
        tensor is not None
        and tensor.dtype == torch.float32
        and tensor.device.type == "cpu"
        and tensor.is_contiguous()
    )


def _is_own(method: object, known: object) -> bool:
    """Whether `method`, bound to an object, is another function than `known`."""
    return getattr(method, "__func__", None) is not known


def _flat(params: list[Tensor]) -> Tensor:
    """The parameters as one vector: a view if they lie one after the other, else a copy."""
    end = params[0].data_ptr()
    storage = params[0].untyped_storage().data_ptr()
    for param in params:
        if param.data_ptr() != end or param.untyped_storage().data_ptr() != storage:
            return torch.cat([param.flatten() for param in params])
        end += param.nbytes
    size = sum(param.numel() for param in params)
    return params[0].as_strided((size,), (1,))
