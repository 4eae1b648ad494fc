"""Numbers of the program that are read at every flush, such as a queue's length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


class Gauges:
    """The numbers' names, and the functions that read them."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Callable[[], float], bool]] = {}
        self._before: dict[str, tuple[int, float]] = {}

    def add(self, name: str, read: Callable[[], float], rate: bool) -> None:
        """Record `read()` under this name; with `rate`, its growth per second."""
        self._read[name] = (read, rate)

    def take(self, now: int) -> list[Any]:
        """The entries of the gauges that have a new value."""
        entries = []
        for name, (read, rate) in list(self._read.items()):
            try:
                value = float(read())
            except Exception:  # its object is gone, which must not disturb the program
                del self._read[name]
                self._before.pop(name, None)
                continue
            if not math.isfinite(value):  # JSON cannot express it
                continue
            before = self._before.get(name)
            self._before[name] = now, value
            if not rate:
                if before is None or before[1] != value:
                    entries.append({"counter": [name, now, value]})
            elif before is not None and now > before[0]:
                growth = (value - before[1]) / (now - before[0]) * 1e9
                entries.append({"counter": [f"{name}/s", now, growth]})
        return entries
