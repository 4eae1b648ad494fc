"""Classes in a saved file are written by name. Reading looks for a name among the modules that are
imported already, since reading a file must not run code."""

import sys
from collections.abc import Mapping
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

KEPT = (int, float, str, type(None))


class NotKept(Exception):
    """A value that a saved file cannot contain."""


def encoded(value: Any) -> Any:
    """Plain values for numbers, texts, paths, members of an Enum, lists, dictionaries, and classes
    of torch's modules and optimisers; NotKept for anything else."""
    if isinstance(value, type) and issubclass(value, nn.Module | torch.optim.Optimizer):
        return {"class": f"{value.__module__}:{value.__qualname__}"}
    if isinstance(value, Mapping):
        return {"dict": {str(key): encoded(one) for key, one in value.items()}}
    if isinstance(value, list | tuple):
        return [encoded(one) for one in value]
    if isinstance(value, Enum):
        return encoded(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Real) and not isinstance(value, int):
        return float(value)
    if isinstance(value, KEPT):
        return value
    raise NotKept(type(value).__name__)


def decoded(name: str, value: Any) -> Any:
    """The value from which `encoded` was made, for the argument `name`. ValueError for a class that
    is not imported."""
    if isinstance(value, list):
        return [decoded(name, one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if "dict" in value:
        return {key: decoded(name, one) for key, one in value["dict"].items()}
    module, _, qualname = value["class"].partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, nn.Module | torch.optim.Optimizer):
        return found
    raise ValueError(
        f"{name}: the file names the class {qualname} of {module}, which is not imported; import "
        f"it before load, or give {name} to load again"
    )
