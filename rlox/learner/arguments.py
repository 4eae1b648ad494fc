"""Checks of the trainers' arguments: each error names the argument, its value and what would do."""

import sys
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlox.env.arguments import integer

LARGEST = sys.float_info.max  # of finite numbers


def require_integers(minimum: int, **arguments: Any) -> None:
    """TypeError if one of `arguments` is no integer, ValueError if it is smaller."""
    for name, value in arguments.items():
        if integer(name, value) < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")


def require_numbers(minimum: float = -LARGEST, maximum: float = LARGEST, **arguments: Any) -> None:
    """TypeError if one of `arguments` is no real number, ValueError if it is out of range; an
    infinite one is, unless `maximum` is infinite."""
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


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What `save` writes of a constructor's arguments: those that are plain values, as Python's
    own, since `load` takes no others. The environment and the device are given anew."""
    own = {name: _plain(value) for name, value in arguments.items() if name != "device"}
    kept = (int, float, str, list, type(None))
    return {name: v for name, v in own.items() if name != "env" and isinstance(v, kept)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return float(value) if isinstance(value, Real) and not isinstance(value, int) else value


def require_device(device: str | torch.device) -> torch.device:
    """The torch device of that name, "auto" being a GPU if there is one; ValueError if none is."""
    if device == "auto":
        device = accelerator() or "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f'device {str(device)!r} cannot be used here; "cpu" always can ({error})'
        ) from error
    return torch.device(device)


def accelerator() -> str | None:
    """ "cuda" or "mps", whichever torch finds here."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def require_methods(argument: str, module: nn.Module, methods: Iterable[str]) -> None:
    """TypeError if `module`, given as `argument`, is no torch module or lacks one of `methods`."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"{argument} must be a torch.nn.Module, got {type(module).__name__}")
    missing = [name for name in methods if not callable(getattr(module, name, None))]
    if missing:
        raise TypeError(
            f"{argument} ({type(module).__name__}) lacks {', '.join(missing)}; "
            "rlox.learner.policies documents the interface"
        )


def require_finite(log_probs: Tensor) -> None:
    """ValueError if one of a rollout's log-probabilities is infinite, or no number."""
    if not log_probs.isfinite().all():
        raise ValueError(
            "policy: gives log-probabilities that are not finite; a lower learning_rate, "
            "or smaller rewards, may keep training from diverging"
        )
