"""Calls us when the program imports a module, and puts our function in place of one of its own."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


class _Finder:
    """Finds no module by itself: it asks the others, and has the loader tell when it is done."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[Any], None]]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        callbacks = self.waiting.pop(name, None)
        if callbacks is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                self._listen(spec.loader, callbacks)
                return spec
        return None

    @staticmethod
    def _listen(loader: Any, callbacks: list[Callable[[Any], None]]) -> None:
        run = getattr(loader, "exec_module", None)
        if run is None or isinstance(loader, type):  # a built-in module's loader is a class
            return

        def exec_module(module: Any) -> None:
            run(module)
            for callback in callbacks:
                callback(module)

        loader.exec_module = exec_module


_finder = _Finder()


def on_import(name: str, callback: Callable[[Any], None]) -> None:
    """Call `callback(module)` right after the program has imported `name`, or now if it has."""
    if name in sys.modules:
        callback(sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting.setdefault(name, []).append(callback)


def replace(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    """Put `make(original)` where the function `name` of a module or class was, if it is there."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, functools.wraps(original)(make(original)))
