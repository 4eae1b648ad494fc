"""Checks of the trainers' arguments: each error names the argument, its value and what would do."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def require_at_least(minimum: float, **arguments: float) -> None:
    """ValueError if one of `arguments` is smaller, or no number."""
    for name, value in arguments.items():
        if not value >= minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")


def require_fraction(**arguments: float) -> None:
    """ValueError if one of `arguments` lies outside [0, 1]."""
    for name, value in arguments.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be in [0, 1], got {value}")


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
