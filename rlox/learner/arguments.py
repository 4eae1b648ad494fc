"""Checks of the trainers' arguments: each error names the argument, its value and the remedy."""

import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlox.env.arguments import integer
from rlox.learner.classes import NotKept, encoded

LARGEST = sys.float_info.max  # the largest finite number


class Unsupported(ValueError, AssertionError):
    """A space, or a number of environments, that a trainer or its policy cannot handle. It is an
    AssertionError too, since Stable-Baselines3 raises that and programs written for it catch it."""


def require_integers(minimum: int, **arguments: Any) -> None:
    """TypeError if one of `arguments` is no integer, ValueError if it is smaller."""
    for name, value in arguments.items():
        if integer(name, value) < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")


def require_numbers(minimum: float = -LARGEST, maximum: float = LARGEST, **arguments: Any) -> None:
    """TypeError if one of `arguments` is no real number, ValueError if it is out of range. Infinity
    is out of range unless `maximum` is infinite."""
    for name, value in arguments.items():
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number, got {value!r}")
        if not minimum <= float(value) <= maximum:
            finite = " and finite" if maximum == LARGEST else ""
            allowed = f"at least {minimum}{finite}" if minimum > -LARGEST else "a finite number"
            if maximum < LARGEST:
                allowed = f"in [{minimum}, {maximum}]"
            raise ValueError(f"{name} must be {allowed}, got {value}")


def require_flags(**arguments: Any) -> None:
    """TypeError if one of `arguments` is neither True nor False."""
    for name, value in arguments.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False, got {value!r}")


def require_one_of(name: str, value: Any, allowed: Iterable[str], else_: str = "") -> None:
    """ValueError if `value` is none of `allowed`."""
    if value not in allowed:
        words = " or ".join(f'"{word}"' for word in allowed)
        raise ValueError(f"{name} must be {words}{else_ and ' '}{else_}, got {value!r}")


# Arguments of Stable-Baselines3 that this library lacks: the value that asks for nothing special,
# and what to do instead.
LEFT_OUT: dict[str, tuple[Any, str]] = {
    "rollout_buffer_class": (
        None,
        "a rollout is kept as rlox.learner.ppo.Rollout; derive from PPO",
    ),
    "rollout_buffer_kwargs": (None, "a rollout is kept as rlox.learner.ppo.Rollout"),
    "replay_buffer_class": (
        None,
        "HER and other buffers are not here; relabel goals in the environment, or use "
        "Stable-Baselines3's SAC; SAC(prioritized=True) replays by priority",
    ),
    "optimize_memory_usage": (False, "it takes True or False"),
    "n_steps": (1, "SAC learns from single steps; Stable-Baselines3's SAC has returns of several"),
    "monitor_wrapper": (True, "episodes are booked without a Monitor"),
    "_init_setup_model": (True, "networks are made at once"),
}
# Other values for what is done anyway: consecutive observations of 256 bytes or more are stored
# once.
DONE_ANYWAY: dict[str, tuple[Any, ...]] = {
    "optimize_memory_usage": (True,),
}


def policy_and_env(first: Any, second: Any, policy: Any, env: Any) -> tuple[Any, Any]:
    """Policy and environment of a trainer that was made in either form: `(policy, env)`, as in
    Stable-Baselines3, or `(env)`, in which the policy is None, a module, or a keyword argument."""
    if isinstance(second, int):
        raise TypeError(
            f"env: is {second}; after env, arguments are given by name: n_envs={second}"
        )
    if (second is not None or (first is not None and env is not None)) and policy is not None:
        raise TypeError("policy: is given twice; give it once, first or by name")
    if second is not None and env is not None:
        raise TypeError("env: is given twice; give it once, in its place or by name")
    if second is not None or (first is not None and env is not None):
        return first, env if second is None else second
    found = env if first is None else first
    if found is None:
        raise TypeError('env is needed: PPO("MlpPolicy", env), or PPO(env)')
    return policy, found


def differences(
    given: Mapping[str, Any], usual: Mapping[str, Any], theirs: Mapping[str, Any]
) -> str:
    """The defaults of arguments that are not `given`, if Stable-Baselines3's differ."""
    left = [name for name, value in given.items() if value is None and usual[name] != theirs[name]]
    return ", ".join(f"{name}={usual[name]} for {theirs[name]}" for name in left)


def refuse_left_out(where: str, others: Mapping[str, Any]) -> None:
    """Ignore arguments whose value asks for nothing special. ValueError, with the alternative, for
    arguments of Stable-Baselines3 that are not supported; TypeError for unknown ones."""
    for name, value in others.items():
        if name not in LEFT_OUT:
            raise TypeError(f"{where} got an unexpected argument {name!r}")
        nothing, alternative = LEFT_OUT[name]
        if value != nothing and value not in DONE_ANYWAY.get(name, ()):
            raise ValueError(f"{where}: {name}={value!r} is not supported: {alternative}")


# Local variables of a constructor that are not saved: `load` gets some of them anew, and the others
# are no arguments.
NOT_KEPT = {
    *("self", "__class__", "first", "second", "env", "device"),
    *("usual", "others", "given", "described"),
}


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's arguments that `save` writes: plain Python values, and classes by their
    names, since `load` accepts nothing else. The environment and the device are not among them;
    they are given to `load`."""
    kept = {}
    for name, value in arguments.items():
        if name in NOT_KEPT:
            continue
        with suppress(NotKept):
            kept[name] = encoded(value)
    return kept


def not_plain(arguments: Mapping[str, Any]) -> list[str]:
    """The names of the constructor's arguments that `plain` leaves out because a file cannot hold
    their values."""
    return sorted(arguments.keys() - plain(arguments).keys() - NOT_KEPT)


OF_NETWORKS = {"policy", "critic", "policy_kwargs"}


def require_lost(lost: set[str], path: Any) -> None:
    """Arguments that a file could not hold, and that are not given anew: ValueError for those of
    networks, which would be others; a warning for what is only needed to go on learning."""
    if missing := ", ".join(sorted(lost & OF_NETWORKS)):
        raise ValueError(
            f"{missing}: {path} cannot hold what was given when the model was made, a function or "
            "an object; it must be given to load, too"
        )
    if missing := ", ".join(sorted(lost - OF_NETWORKS)):
        warnings.warn(
            f"{missing}: {path} cannot hold what was given, a function or an object. To go on "
            "learning, give it to load again: without it a schedule stays at its first value, "
            "there is no noise, and anything else has its default",
            stacklevel=3,
        )


def require_device(device: str | torch.device) -> torch.device:
    """The torch device of that name; "auto" is a GPU if there is one. ValueError for an unknown
    name. "cuda" without a GPU is the CPU, with a warning, as in Stable-Baselines3."""
    if device == "auto":
        device = accelerator() or "cpu"
    if str(device).partition(":")[0] == "cuda" and not torch.cuda.is_available():
        warnings.warn(f"device: there is no {str(device)!r} here; it is the CPU", stacklevel=4)
        device = "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f'device {str(device)!r} cannot be used here; "cpu" always can ({error})'
        ) from error
    return torch.device(device)


def accelerator() -> str | None:
    """ "cuda" or "mps", if torch finds one here."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def require_methods(argument: str, module: nn.Module, methods: Iterable[str]) -> None:
    """TypeError if `module`, given as `argument`, is not a torch module with all `methods`."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"{argument} must be a torch.nn.Module, got {type(module).__name__}")
    missing = [name for name in methods if not callable(getattr(module, name, None))]
    if missing:
        raise TypeError(
            f"{argument} ({type(module).__name__}) lacks {', '.join(missing)}; "
            "rlox.learner.policies documents the interface"
        )


def require_finite(log_probs: Tensor) -> None:
    """ValueError if one of a rollout's log-probabilities is infinite or NaN."""
    if not log_probs.isfinite().all():
        raise ValueError(
            "policy: gives log-probabilities that are not finite; a lower learning_rate, "
            "or smaller rewards, may keep training from diverging"
        )
