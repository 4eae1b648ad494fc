"""The fixture `benchmark` of pytest-benchmark and of pytest-codspeed, as tests call it. The call
that a test gives it is timed later, on command. This file needs the standard library alone.

https://pytest-benchmark.readthedocs.io/en/latest/usage.html
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlox_opt_prepared import timed

# Calls seem to change what they work on if the slices' times follow their order (a rank correlation
# over `_TREND`), and the median of the last third is longer than that of the first by `_GROWN`, or
# shorter by `_CHANGED`; or if a first call takes `_CHANGED` times as long and `_CHANGED_S` more.
_TREND, _GROWN = 0.9, 1.25
_CHANGED, _CHANGED_S = 1.5, 20e-6
_LEAST_SLICES = 5


class Call:
    """What is timed: a function with its arguments, which `setup` may make anew for each call.
    `bears` is the number of calls that one run of the test is meant for; 0 is any number."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        bears: int = 0,
        warm: int = 0,
    ) -> None:
        self._function = function
        self._args, self._kwargs = args, dict(kwargs or {})
        self._setup, self._teardown = setup, teardown
        self.bears, self._warm = bears, warm
        self.alone = int(setup is not None or teardown is not None)
        self.first_s = 0.0
        self.slices: list[tuple[int, float]] = []  # calls, and seconds of one

    def first(self) -> Any:
        """Call the function once, and return its result."""
        call, ended = self._ready()
        results: list[Any] = []
        self.first_s = timed(lambda: results.append(call()), 1)
        ended()
        return results[0]

    def few(self, calls: int) -> tuple[float, Any]:
        """Time the calls of one run of the test, after the test's own warm-up. Returns the seconds
        of all together, and the result of the last."""
        call, _ = self._ready()
        timed(call, self._warm)
        results: list[Any] = []
        seconds = timed(call, calls - 1)
        seconds += timed(lambda: results.append(call()), 1)
        self.slices.append((calls, seconds / calls))
        return seconds, results[0]

    def time(self, calls: int, warm: int = 0) -> float:
        """Seconds that the calls take together, after `warm` calls that are not timed."""
        if self.alone:
            seconds = sum(self._once() for _ in range(calls))
        else:
            call, _ = self._ready()
            timed(call, warm)
            seconds = timed(call, calls)
        self.slices.append((calls, seconds / calls))
        return seconds

    def changed(self, first_s: float) -> str:
        """A note for the user that the calls change what they work on; "" if they do not. First
        calls of the benchmark take `first_s` seconds at the least."""
        # Slices with fewer calls served to find out how many calls a slice needs.
        slices = [seconds for calls, seconds in self.slices if calls == self.slices[-1][0]]
        if self.alone or len(slices) < _LEAST_SLICES:
            return ""
        third = len(slices) // 3
        early, late = (statistics.median(of) for of in (slices[:third], slices[-third:]))
        changed = late > _GROWN * early or early > _CHANGED * late  # more, as a warm-up speeds up
        if changed and abs(_trend(slices)) > _TREND:
            return (
                f"its calls change what they work on: the last ones took {late / early:.2g} times "
                "as long as the first; a `setup` of benchmark.pedantic makes that anew for each"
            )
        usual = statistics.median(slices)
        if first_s > _CHANGED * usual + _CHANGED_S:
            return (
                f"its first call takes {first_s / usual:.2g} times as long as the later ones, and "
                "those are compared; a `setup` of benchmark.pedantic makes each call a first one"
            )
        return ""

    def _once(self) -> float:
        call, ended = self._ready()
        seconds: float = timed(call, 1)
        ended()
        return seconds

    def _ready(self) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """The function to time, and the function to call afterwards, each with its arguments."""
        args, kwargs = self._args, self._kwargs
        made = self._setup() if self._setup is not None else None
        if made is not None:
            if args or kwargs:
                raise TypeError("either `setup` makes the arguments, or they are given")
            args, kwargs = made
        ended = functools.partial(self._teardown, *args, **kwargs) if self._teardown else _nothing
        return functools.partial(self._function, *args, **kwargs), ended


def _trend(values: Sequence[float]) -> float:
    """Spearman's rank correlation of values with their order: 1 where each is above the last."""
    n = len(values)
    order = sorted(range(n), key=values.__getitem__)
    apart = sum((rank - place) ** 2 for rank, place in enumerate(order))
    return 1 - 6 * apart / (n * (n * n - 1))


def _nothing() -> None:
    pass


class Stats(Mapping[str, Any]):
    """The times that a test may read of its own call, in seconds."""

    def __init__(self, of: Call) -> None:
        self.data = [seconds for _, seconds in of.slices] or [of.first_s]
        self.stats = self

    def _told(self) -> dict[str, Any]:
        data = sorted(self.data)
        spread = statistics.stdev(data) if len(data) > 1 else 0.0
        low, middle, high = (
            statistics.quantiles(data, n=4) if len(data) > 1 else (data[0], data[0], data[0])
        )
        mean = statistics.fmean(data)
        return {
            "min": data[0], "max": data[-1], "mean": mean, "median": middle, "stddev": spread,
            "q1": low, "q3": high, "iqr": high - low, "rounds": len(data), "iterations": 1,
            "total": sum(data), "ops": 1 / mean if mean else 0.0, "outliers": "0;0",
            "ld15iqr": data[0], "hd15iqr": data[-1], "iqr_outliers": 0, "stddev_outliers": 0,
        }  # fmt: skip

    def __getitem__(self, name: str) -> Any:
        return self._told()[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self._told()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Any:
        return iter(self._told())

    def __len__(self) -> int:
        return len(self._told())


class Benchmark:
    """The object that a test gets as `benchmark`: it calls a function, and is a decorator too.
    `stop` gets the call, and returns the result that the test receives."""

    enabled, disabled, skipped, has_error = True, False, False, False

    def __init__(self, request: Any, stop: Callable[[Call], Any]) -> None:
        node = request.node
        of = getattr(node, "callspec", None)
        marker = node.get_closest_marker("benchmark")
        self.name, self.fullname = node.name, node.nodeid
        self.param: str | None = of.id if of else None
        self.params: dict[str, Any] | None = of.params if of else None
        self.group = marker.kwargs.get("group") if marker else None
        self.options = dict(marker.kwargs) if marker else {}
        self.extra_info: dict[str, Any] = {}
        self.stats: Stats | None = None
        self._stop = stop

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._measured(Call(function, args, kwargs))

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """As pytest-benchmark's. With neither `setup` nor `teardown`, one run of the test is good
        for `rounds * iterations` calls."""
        for name, value in (("iterations", iterations), ("rounds", rounds)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; it takes a number over 0")
        if setup is not None and iterations != 1:
            raise ValueError(f"iterations is {iterations}; with a `setup` it takes 1")
        bears = rounds * iterations if setup is None and teardown is None else 0
        warm = warmup_rounds * iterations
        return self._measured(Call(target, args, kwargs, setup, teardown, bears, warm))

    def _measured(self, call: Call) -> Any:
        if self.stats is not None:
            raise RuntimeError("the fixture `benchmark` can be used once in a test")
        self.stats = Stats(call)
        try:
            return self._stop(call)
        finally:
            self.stats = Stats(call)
