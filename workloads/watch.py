"""The callbacks of a profiling child: its clock, and the window in which something is recorded."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

from rlox.learner.callbacks import BaseCallback

FOREVER = 2**62  # environment steps: training that its window ends
_TICK_NS = 50_000_000
_TICKS_PER_MESSAGE = 10


def run_delay_ns() -> int:
    """Nanoseconds for which this thread was ready to run while other programs held the CPUs.

    From Linux's scheduler statistics; 0 where there are none.
    """
    try:
        _, waited_ns, _ = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return 0
    return int(waited_ns)


def gradient_steps(model: Any) -> int:
    """Minibatches learnt from so far, as Adam counts them, in torch or in Rust."""
    adam = model.critic_optimizer if hasattr(model, "critic_optimizer") else model.optimizer
    return max((int(state["step"]) for state in adam.state.values()), default=0)


class Clock(BaseCallback):
    """Notes how far training is, twenty times a second, and ends it when stdin is closed.

    `ticks` are (monotonic ns, environment steps, CPU ns of the training thread, ns for which it was
    kept waiting for a CPU). The end of stdin is how the driver says stop, and what its death looks
    like: no child outlives it.
    """

    def __init__(self, say: Callable[..., None], stdin: int | None = None) -> None:
        self.say = say
        self.ticks: list[tuple[int, int, int, int]] = []
        self._stdin = sys.stdin.fileno() if stdin is None else stdin
        self._next = 0
        self._stopped = False

    def on_training_start(self, *given: Any) -> None:
        self._tick(perf_counter_ns())

    def on_step(self) -> bool:
        now = perf_counter_ns()
        if now >= self._next:
            self._tick(now)
        return not self._stopped

    def on_training_end(self) -> None:
        self._tick(perf_counter_ns())

    @property
    def stopped(self) -> bool:
        """Whether training ended because stdin was closed."""
        return self._stopped

    def _tick(self, now: int) -> None:
        self._next = now + _TICK_NS
        self.ticks.append((now, self.num_timesteps, thread_time_ns(), run_delay_ns()))
        # Polled, not waited for: a thread that reads stdin would be one more in every profile.
        self._stopped = bool(select.select([self._stdin], [], [], 0)[0])
        if len(self.ticks) % _TICKS_PER_MESSAGE == 0:
            self.say(steps=self.num_timesteps)


class Window(BaseCallback):
    """A stretch of whole iterations, from the first update after the warm-up until it is `over`.

    It begins and ends just before an update, so that it holds as many rollouts as updates; what
    ends it ends training.
    """

    def __init__(self, warmup_steps: int) -> None:
        self.warmup_steps = warmup_steps
        self.iterations: int | None = None  # None before the window
        self.finished = False

    def begin(self) -> None:
        """Start to record."""

    def over(self) -> bool:
        """Whether enough is recorded; asked after each iteration."""
        return False

    def end(self) -> None:
        """Stop recording."""

    def on_rollout_end(self) -> None:
        if self.finished:
            return
        if self.iterations is None:
            if self.num_timesteps >= self.warmup_steps:
                self.iterations = 0
                self.begin()
            return
        self.iterations += 1
        if self.over():
            self.end()
            self.finished = True

    def on_step(self) -> bool:
        return not self.finished
