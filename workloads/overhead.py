"""What it costs a training run to be recorded, and to be sampled:
`python -m workloads.overhead [SECONDS]`.

One PPO trains, eagerly, which has the most spans for its work. Its spans are kept in one iteration
and not in the next, and perf looks on for a second and away for the next, in random order within
each pair. So both sides see the same machine, and a ratio of neighbours is free of its drift.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Sequence
from math import log
from pathlib import Path
from statistics import fmean

from rlox_opt.sampling import perf
from rlox_opt.sampling.processes.launch import Options, launch
from rlox_opt.sampling.processes.samplers import Perf
from rlox_opt.stats.student import ratio_interval
from rlox_opt.system.scratch import scratch

_MODULE = "workloads.overhead"
_WINDOW_S = 1.0
_PAIRS = 10  # of iterations that are one observation: neighbours are not independent
_WARM_UP = 20  # iterations

Iteration = tuple[int, int, bool]  # begin and end, monotonic ns; whether spans were kept
Window = tuple[int, int, bool]  # the same of perf
Pair = tuple[Iteration, Iteration]  # with spans, without


def main(argv: Sequence[str]) -> int:
    """Measure, print a line each, and return 0."""
    if argv[:1] == ["--train"]:
        train(float(argv[1]), Path(argv[2]))
        return 0
    seconds = float(argv[0]) if argv else 120.0
    with scratch() as folder:
        looked = Alternating() if perf.unavailable() is None else None
        told = folder / "iterations.json"
        command = [sys.executable, "-m", _MODULE, "--train", str(seconds), str(told)]
        launch(command, folder / "run", Options(), looked, _Silent(), sys.stderr)
        iterations: list[Iteration] = [tuple(i) for i in json.loads(told.read_text())]
    windows = looked.windows if looked else []
    print(_line("spans", of_spans(iterations, windows)))
    print(_line("perf", of_sampling(iterations, windows)) if looked else "perf: not to be had here")
    return 0


def of_spans(iterations: Sequence[Iteration], windows: Sequence[Window]) -> list[float]:
    """Logarithms of time with spans / time without, in blocks of neighbouring pairs."""
    seen = [(begin, end) for begin, end, on in windows if on]
    pairs = [
        (first, second) if first[2] else (second, first)
        for first, second in zip(iterations[::2], iterations[1::2], strict=False)
        if not any(first[0] < end and begin < second[1] for begin, end in seen)
    ]
    return [
        log(sum(_took(on) for on, _ in block) / sum(_took(off) for _, off in block))
        for block in _blocks(pairs)
    ]


def of_sampling(iterations: Sequence[Iteration], windows: Sequence[Window]) -> list[float]:
    """Logarithms of time under perf / time without, of neighbouring windows."""
    means = [
        (fmean(took), on)
        for begin, end, on in windows
        if (took := [_took(i) for i in iterations if begin <= i[0] and i[1] <= end])
    ]
    return [
        log(first[0] / second[0]) * (1 if first[1] else -1)
        for first, second in zip(means[::2], means[1::2], strict=False)
        if first[1] != second[1]
    ]


def _took(iteration: Iteration) -> int:
    return iteration[1] - iteration[0]


def _blocks(pairs: Sequence[Pair]) -> list[Sequence[Pair]]:
    return [pairs[n : n + _PAIRS] for n in range(0, len(pairs) - _PAIRS + 1, _PAIRS)]


def _line(what: str, ratios: Sequence[float]) -> str:
    if len(ratios) < 2:
        return f"{what}: too few pairs; train for longer"
    low, high = ratio_interval(ratios, 0.05)
    middle = fmean(ratios)
    return (
        f"{what}: {100 * middle:+.2f} % (95 % interval {100 * (low - 1):+.2f} to "
        f"{100 * (high - 1):+.2f} %, {len(ratios)} pairs)"
    )


class Alternating(Perf):
    """perf that looks on and away, a window each, the order drawn pair by pair."""

    def __init__(self) -> None:
        super().__init__()
        self.windows: list[Window] = []
        self._order: list[bool] = []
        self._since = 0
        self._draw = random.Random(0)

    def poll(self, elapsed: float) -> None:
        now = time.monotonic_ns()
        if now - self._since < _WINDOW_S * 1e9:
            return
        if self._since:
            self.windows.append((self._since, now, self._on))
        if not self._order:
            self._order = self._draw.sample([True, False], 2)
        self.switch(self._order.pop())
        self._since = time.monotonic_ns()


class _Silent:
    """Progress that nobody is told of."""

    def plan(self, steps: Sequence[tuple[str, float]]) -> None: ...

    def begin(self, title: str) -> None: ...

    def note(self, text: str, fraction: float | None = None) -> None: ...

    def end(self, text: str) -> None: ...


def train(seconds: float, told: Path) -> None:
    """Train eagerly, spans kept in every other iteration, and write down when each was."""
    import rlox
    from rlox.learner.callbacks import BaseCallback

    class Flip(BaseCallback):
        def __init__(self) -> None:
            self.iterations: list[Iteration] = []
            self.until = time.monotonic_ns() + round(seconds * 1e9)
            self.order: list[bool] = []
            self.begin = 0
            self.draw = random.Random(1)

        def on_rollout_start(self) -> None:
            now = time.monotonic_ns()
            if self.begin:
                self.iterations.append((self.begin, now, self.model.timing.enabled))
            if not self.order:
                self.order = self.draw.sample([True, False], 2)
            self.model.timing.enabled = self.order.pop()
            self.begin = time.monotonic_ns()

        def on_step(self) -> bool:
            return time.monotonic_ns() < self.until

    # A collection of all that was imported, 0.2 s long, would fall on one of the iterations.
    gc.freeze()
    flip = Flip()
    trainer = rlox.PPO("CartPole-v1", n_envs=8, seed=0, optimizations=[], threads=1)
    trainer.learn(2**40, flip)
    told.write_text(json.dumps(flip.iterations[_WARM_UP:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
