"""The arguments `policy` and `policy_kwargs` of the trainers, and what is made of them."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from gymnasium import spaces
from torch import nn

from rlox.learner.acting import Acting
from rlox.learner.featured import kwargs_for, make_actor_and_critic, make_actor_critic
from rlox.learner.policies import StochasticPolicy
from rlox.learner.spaces import warn_of_flattening
from rlox.learner.their_policies import TheirPolicy

MakeOptimizer = Callable[[nn.Module], torch.optim.Optimizer]


def _name(policy: str | None, space: spaces.Space[Any]) -> str:
    """The policy's name, where none was given that of one that sees `space`."""
    usual = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    return policy or usual


def _own_optimizer(module: Any) -> torch.optim.Optimizer:
    found: torch.optim.Optimizer = module.optimizer
    return found


def ppo_policy(
    policy: Any, policy_kwargs: Mapping[str, Any] | None, acting: Acting, rate: float
) -> tuple[Any, MakeOptimizer | None]:
    """PPO's policy, made or given, and what makes its optimiser; None: Adam as PPO has it."""
    space, actions = acting.observation_space, acting.action_space
    make: MakeOptimizer | None = None
    if isinstance(policy, type):
        policy = TheirPolicy(space, actions, policy, rate, dict(policy_kwargs or {}))
        make = _own_optimizer
    elif policy is None or isinstance(policy, str):
        if policy is None:
            warn_of_flattening(space, "policy=…")
        kwargs = kwargs_for(_name(policy, space), space, policy_kwargs)
        policy = make_actor_critic(space, actions, kwargs)
        if kwargs.optimizer_class is not None or kwargs.optimizer_kwargs:
            make = kwargs.optimizer(rate, eps=1e-5)
    elif policy_kwargs is not None:
        raise ValueError("policy_kwargs: they describe a policy by name; this one is made already")
    if isinstance(policy, StochasticPolicy):
        policy.acting = acting
    return policy, make


def sac_networks(
    policy: Any, critic: nn.Module | None, policy_kwargs: Mapping[str, Any] | None, acting: Acting
) -> tuple[Any, Any, Mapping[str, Any]]:
    """SAC's actor and critic, made or given, and settings of their Adams."""
    space, settings = acting.observation_space, dict[str, Any]()
    named = policy is None or isinstance(policy, str)
    if isinstance(policy, type):
        raise ValueError(
            f"policy: is the class {policy.__name__}; SAC takes a policy by name, or modules: "
            "policy=… and critic=…"
        )
    if named or critic is None:
        if not isinstance(policy, str):
            warn_of_flattening(space, "policy=… and critic=…")
        kwargs = kwargs_for(_name(policy if named else None, space), space, policy_kwargs)
        if kwargs.optimizer_class not in (None, torch.optim.Adam):
            raise ValueError("policy_kwargs: optimizer_class must be torch.optim.Adam for SAC")
        settings = dict(kwargs.optimizer_kwargs)
        shape = acting.action_space.shape
        assert shape is not None
        made = make_actor_and_critic(space, torch.Size(shape).numel(), kwargs)
        policy, critic = made[0] if named else policy, made[1] if critic is None else critic
    if isinstance(policy, StochasticPolicy):
        policy.acting = acting
    return policy, critic, settings
