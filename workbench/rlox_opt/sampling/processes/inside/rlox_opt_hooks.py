"""Calls a function when the program imports a module, and replaces functions of the program."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


class _Finder:
    """Finds no module itself. It asks the other finders, and has the loader report when it is
    done."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[Any], None]]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        callbacks = self.waiting.pop(name, None)
        if callbacks is None:  # not a module waited for, or a finder that was asked asks again
            return None
        try:
            for finder in sys.meta_path:
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = None if find is None else find(name, path, target)
                if spec is not None:
                    self._listen(spec.loader)
                    return spec
        finally:
            self.waiting[name] = callbacks
        return None

    def _listen(self, loader: Any) -> None:
        run = getattr(loader, "exec_module", None)
        if run is None or isinstance(loader, type):  # a built-in module's loader is a class
            return

        def exec_module(module: Any) -> None:
            run(module)
            # Callbacks go only now: looking for a module is not importing it. A loader may load
            # several modules.
            for callback in self.waiting.pop(module.__name__, ()):
                _call(callback, module)

        loader.exec_module = exec_module


def _call(callback: Callable[[Any], None], module: Any) -> None:
    """Call it. If a library differs from what is expected, the program goes on without its
    record."""
    try:
        callback(module)
    except Exception as error:
        sys.stderr.write(f"rlox-opt: {module.__name__} is not recorded: {error!r}\n")


_finder = _Finder()


def on_import(name: str, callback: Callable[[Any], None]) -> None:
    """Call `callback(module)` right after the program has imported `name`, or now if it has."""
    if name in sys.modules:
        _call(callback, sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting.setdefault(name, []).append(callback)


def replace(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    """Put `make(original)` in place of the function `name` of a module or class, if there is
    one."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, functools.wraps(original)(make(original)))
