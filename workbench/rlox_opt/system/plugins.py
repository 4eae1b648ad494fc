"""Loads a project's own plug-ins by path, since the project need not be installed."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from rlox_opt.system.usage import UsageError


@cache
def load(path: Path) -> ModuleType:
    """The module in a file, loaded once. Raises UsageError if loading fails."""
    name = f"of_the_project_{path.stem}_{sha256(bytes(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it here
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # of whatever kind, since the file is the project's
        raise UsageError(f"{path}: does not load: {type(error).__name__}: {error}") from error
    return module
