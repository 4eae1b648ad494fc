"""Counts what one iteration of training carries across the boundary, and what it calls in torch.

An iteration is a rollout (PPO) or a step (SAC). Rust's calls, bytes and time are counted by the
extension; calls of the policy and of a Python environment are phases, so `Timing` has counted them.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from rlox._core import count_crossings, take_crossings
from workloads.watch import Window

_MIN_ITERATIONS = 5
_MAX_ITERATIONS = 400
_SECONDS = 1.5

# Phases that are one call each of something that is not ours: (kind, name in the table).
_CALLS = {
    "policy_forward/action": ("torch", "policy: action, log-prob"),
    "policy_forward/value": ("torch", "policy: value"),
    "policy_forward": ("torch", "policy: action"),
    "gae_compute/value": ("torch", "policy: value to bootstrap"),
    "env_step/python_env": ("python env", "env.step"),
    "native_rollout/env_step/python_env": ("python env", "env.step"),
}


class Crossings(Window):
    """Counts over a few iterations; `table()` has the means per iteration."""

    def begin(self) -> None:
        count_crossings(True)
        take_crossings()
        self._phases = self._calls()
        self._deadline = perf_counter() + _SECONDS

    def over(self) -> bool:
        assert self.iterations is not None
        return self.iterations >= _MAX_ITERATIONS or (
            self.iterations >= _MIN_ITERATIONS and perf_counter() > self._deadline
        )

    def end(self) -> None:
        self._counted = take_crossings()
        count_crossings(False)
        before, after = self._phases, self._calls()
        self._called = {
            path: (calls - before.get(path, (0, 0.0))[0], s - before.get(path, (0, 0.0))[1])
            for path, (calls, s) in after.items()
        }

    def table(self) -> list[dict[str, Any]]:
        """Rows of name, kind, `per_iteration` calls, and the iteration's `bytes` and `us`."""
        n = self.iterations
        assert n
        rows = [
            _row(name, "rust", calls / n, bytes_ / n, ns / 1e3 / n)
            for name, (calls, bytes_, ns) in self._counted.items()
        ]
        inner = {path.rpartition("/")[0] for path in self._called}
        for path, (kind, name) in _CALLS.items():
            calls, seconds = self._called.get(path, (0, 0.0))
            if calls and path not in inner:
                rows.append(_row(name, kind, calls / n, 0.0, seconds * 1e6 / n))
        return rows

    def _calls(self) -> dict[str, tuple[int, float]]:
        """Calls and seconds of each phase so far, over all threads."""
        found: dict[str, tuple[int, float]] = {}
        for phases in self.model.timing.trees().values():
            for phase in phases:
                calls, seconds = found.get(phase.name, (0, 0.0))
                found[phase.name] = calls + phase.calls, seconds + phase.seconds
        return found


def _row(name: str, kind: str, calls: float, bytes_: float, us: float) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "per_iteration": round(calls, 3),
        "bytes": round(bytes_),
        "us": round(us, 2),
    }
