"""A window holds whole iterations, and training ends when its driver is gone."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from workloads.watch import Clock, Window


class Recorded(Window):
    """Ends after three iterations; notes the steps at which it began and ended."""

    def begin(self) -> None:
        self.began = self.num_timesteps

    def over(self) -> bool:
        return self.iterations == 3

    def end(self) -> None:
        self.ended = self.num_timesteps


def trainer(steps: int = 0) -> Any:
    return SimpleNamespace(num_timesteps=steps)


def test_a_window_begins_after_the_warm_up_and_holds_whole_iterations() -> None:
    window = Recorded(warmup_steps=150)
    window.model = trainer()
    going = True
    while going:
        window.model.num_timesteps += 100
        window.on_rollout_end()
        going = window.on_step()
    assert (window.began, window.ended) == (200, 500)


def test_the_clock_stops_training_when_stdin_is_closed() -> None:
    read, write = os.pipe()
    messages: list[dict[str, Any]] = []
    clock = Clock(lambda **message: messages.append(message), stdin=read)
    clock.model = trainer()
    clock.on_training_start()
    assert clock.on_step()
    os.close(write)
    clock._next = 0  # as if a twentieth of a second had passed
    assert not clock.on_step()
    assert clock.stopped
    os.close(read)


def test_ticks_are_few_and_tell_time_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("workloads.watch.perf_counter_ns", lambda: now)
    read, write = os.pipe()
    clock = Clock(lambda **_: None, stdin=read)
    clock.model = trainer()
    clock.on_training_start()
    for _ in range(1000):
        now += 1_000_000
        clock.model.num_timesteps += 8
        clock.on_step()
    assert len(clock.ticks) == 21  # at 0, 50, …, 1000 ms
    assert clock.ticks[-1][:2] == (1_000_000_000, 8000)
    os.close(read)
    os.close(write)
