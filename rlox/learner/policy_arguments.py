"""Makes policies from the trainers' arguments `policy` and `policy_kwargs`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import torch
from gymnasium import spaces
from torch import nn

from rlox.learner.acting import Acting
from rlox.learner.arguments import Unsupported, require_device, require_flags, require_integers
from rlox.learner.classes import NotKept, decoded, encoded
from rlox.learner.featured import kwargs_for, make_actor_and_critic, make_actor_critic
from rlox.learner.policies import SacPolicy, StochasticPolicy
from rlox.learner.saved import read, write
from rlox.learner.spaces import as_saved, from_saved, is_image, warn_of_flattening
from rlox.learner.their_policies import TheirPolicy

MakeOptimizer = Callable[[nn.Module, float], Any]  # from a module and a learning rate
Policy = TypeVar("Policy", bound=StochasticPolicy)


def _name(policy: str | None, space: spaces.Space[Any]) -> str:
    """The policy's name; if none was given, that of a policy for the observation `space`."""
    usual = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    return policy or usual


def with_sde(
    use_sde: bool, sde_sample_freq: int, policy: Any, policy_kwargs: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """`policy_kwargs` with a trainer's arguments `use_sde` and `sde_sample_freq`. `Unsupported` for
    keys that need `use_sde` if it is not set, ValueError with a policy object."""
    require_flags(use_sde=use_sde)
    require_integers(-1, sde_sample_freq=sde_sample_freq)
    given = policy_kwargs or {}
    if not use_sde:
        if given.get("squash_output") or given.get("use_sde"):
            name = "squash_output" if given.get("squash_output") else "use_sde"
            raise Unsupported(f"policy_kwargs: {name} belongs to use_sde=True of the trainer")
        return policy_kwargs
    if isinstance(policy, nn.Module):
        raise ValueError("use_sde: describes a policy by name; this one is made already")
    return {**given, "use_sde": True}


def _own_optimizer(module: Any, rate: float) -> torch.optim.Optimizer:
    found: torch.optim.Optimizer = module.optimizer
    return found


def ppo_policy(
    policy: Any, policy_kwargs: Mapping[str, Any] | None, acting: Acting, rate: float
) -> tuple[Any, MakeOptimizer | None]:
    """PPO's policy, made or given, and a function that makes its optimiser; None: PPO's Adam."""
    space, actions = acting.observation_space, acting.action_space
    make: MakeOptimizer | None = None
    if isinstance(policy, type):
        policy = TheirPolicy(space, actions, policy, rate, dict(policy_kwargs or {}))
        make = _own_optimizer
    elif policy is None or isinstance(policy, str):
        if policy is None:
            warn_of_flattening(space, "policy=…")
        name = _name(policy, space)
        kwargs = kwargs_for(name, space, policy_kwargs)
        policy = make_actor_critic(space, actions, kwargs)
        policy.made_from = name, policy_kwargs or {}
        if kwargs.optimizer_class is not None or kwargs.optimizer_kwargs is not None:
            # As in Stable-Baselines3, where Adam's epsilon differs if settings are given.
            make = kwargs.optimizer(
                **({} if kwargs.optimizer_kwargs is not None else {"eps": 1e-5})
            )
    elif policy_kwargs is not None:
        raise ValueError("policy_kwargs: they describe a policy by name; this one is made already")
    if isinstance(policy, StochasticPolicy):
        policy.acting = acting
    return policy, make


def sac_networks(
    policy: Any,
    critic: nn.Module | None,
    policy_kwargs: Mapping[str, Any] | None,
    acting: Acting,
    adam: MakeOptimizer,
) -> tuple[Any, Any, MakeOptimizer]:
    """SAC's actor and critic, made or given, and a function that makes their optimisers: `adam`
    with the given settings, unless another kind is asked for."""
    space, make = acting.observation_space, adam
    named = policy is None or isinstance(policy, str)
    if isinstance(policy, type):
        raise ValueError(
            f"policy: is the class {policy.__name__}; SAC takes a policy by name, or modules: "
            "policy=… and critic=…"
        )
    if named or critic is None:
        if not isinstance(policy, str):
            warn_of_flattening(space, "policy=… and critic=…")
        name = _name(policy if named else None, space)
        kwargs = kwargs_for(name, space, policy_kwargs)
        if kwargs.optimizer_class not in (None, torch.optim.Adam):
            make = kwargs.optimizer()
        elif kwargs.optimizer_kwargs:
            make = partial(adam, **kwargs.optimizer_kwargs)
        actor, q_functions = make_actor_and_critic(space, _size(acting.action_space), kwargs)
        actor.made_from = name, policy_kwargs or {}
        policy, critic = actor if named else policy, q_functions if critic is None else critic
    if isinstance(policy, StochasticPolicy):
        policy.acting = acting
    return policy, critic, make


def _size(space: spaces.Space[Any]) -> int:
    assert space.shape is not None
    return torch.Size(space.shape).numel()


def write_policy(policy: StochasticPolicy, path: str | Path | IO[bytes]) -> None:
    """What `policy.save` does."""
    if policy.made_from is None or policy.acting is None:
        raise ValueError(
            f"policy.save: no trainer has made this {type(policy).__name__} by name, so that load "
            "could not make it; write its weights: torch.save(policy.state_dict(), path)"
        )
    name, kwargs = policy.made_from
    try:
        held = encoded(kwargs)
    except NotKept as kind:
        raise ValueError(
            f"policy.save: policy_kwargs hold a {kind}, which no file keeps; write the weights: "
            "torch.save(policy.state_dict(), path)"
        ) from None
    acting = policy.acting
    saved = {
        "policy": name,
        "policy_kwargs": held,
        "spaces": (as_saved(acting.observation_space), as_saved(acting.action_space)),
        "squashed": acting.squashed,
        "of_sac": isinstance(policy, SacPolicy),
        "state": policy.state_dict(),
    }
    write(saved, path, "")  # without an ending, as in Stable-Baselines3


def read_policy(
    cls: type[Policy],
    path: str | Path | IO[bytes],
    device: str | torch.device,
    policy_kwargs: Mapping[str, Any] | None,
) -> Policy:
    """What `load` of a policy class does."""
    to = require_device(device)
    saved = read(path, "", "policy.save", to)
    if not isinstance(saved, dict) or "squashed" not in saved:
        raise ValueError(f"{path} holds no policy that policy.save has written")
    if policy_kwargs is None:
        policy_kwargs = decoded("policy_kwargs", saved["policy_kwargs"])
    space, actions = (from_saved(one) for one in saved["spaces"])
    kwargs = kwargs_for(saved["policy"], space, policy_kwargs)
    with torch.random.fork_rng(devices=[]):  # the weights drawn here are replaced
        made: StochasticPolicy = (
            make_actor_and_critic(space, _size(actions), kwargs)[0]
            if saved.get("of_sac", saved["squashed"])  # missing in files of earlier versions
            else make_actor_critic(space, actions, kwargs)
        )
    if not isinstance(made, cls):
        raise ValueError(f"{path} holds a {type(made).__name__}, not a {cls.__name__}")
    scales = kwargs.normalize_images and is_image(space)
    made.acting = Acting(space, actions, scales, saved["squashed"])
    made.made_from = saved["policy"], policy_kwargs or {}
    made.load_state_dict(saved["state"])
    return made.to(to)
