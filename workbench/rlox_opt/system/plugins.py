"""Python files of a project that its tools load: by path, for no project need be installed."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType


@cache
def load(path: Path) -> ModuleType:
    """The module in a file, loaded once."""
    spec = importlib.util.spec_from_file_location(f"of_the_project_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
