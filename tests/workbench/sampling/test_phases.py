"""Beliefs about phases: read off source lines, and off the clock of the spans."""

import inspect
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlox_opt.sampling.phases import phase_by_line, phases_by_clock
from rlox_opt.sampling.samples import Frame

from rlox.timing import SpanLog, Timing

SOURCE = """\
def train(self):
    setup()
    with self.timing.add_time("update"):
        begin()
        for _ in range(2):
            with self.timing.timeit("forward"), open(path), timing.time_avg("loss"):
                loss(
                    a,
                )
        done = [step(x) for x in y]
        with lock:
            with self.timing.add_time(name):
                dynamic()

        def inner():
            work()

    after()


class Env:
    def train(self):
        with self.timing.add_time("env"): step()


@span
def load():
    with span("parse"):
        parse()


@rlox.timing.span("save it")
def save():
    write()
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "source.py").write_text(SOURCE)
    return str(tmp_path / "source.py")


@pytest.mark.parametrize(
    ("function", "line", "phase"),
    [
        ("train", 2, ""),
        ("train", 3, ""),  # entering the block is not in it
        ("train", 4, "update"),
        ("train", 6, "update"),
        ("train", 7, "update/forward/loss"),
        ("PPO.train", 8, "update/forward/loss"),
        ("train", 10, "update"),
        ("train.<locals>.<listcomp>", 10, ""),  # its caller's line counts, once
        ("train", 13, "update"),  # a name that is no literal is no phase
        ("train.<locals>.inner", 16, ""),  # runs when it is called, wherever that is
        ("train", 18, ""),
        ("Env.train", 23, "env"),
        ("load", 28, "load"),
        ("load", 29, "load/parse"),
        ("save", 34, "save it"),
    ],
)
def test_the_blocks_around_a_line_are_its_phase(
    source: str, function: str, line: int, phase: str
) -> None:
    assert phase_by_line([Frame(function, source, line)]) == phase


def test_phases_of_callers_come_first(source: str) -> None:
    frames = [
        Frame("train", source, 7),
        Frame("mm", "/lib/libtorch.so"),
        Frame("train", source, 23),
    ]
    assert phase_by_line(frames) == "update/forward/loss/env"


def test_a_source_that_cannot_be_read_gives_no_phase(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def (")
    for file in ("<string>", str(tmp_path / "none.py"), str(tmp_path / "broken.py")):
        assert phase_by_line([Frame("train", file, 1)]) == ""


def test_the_phase_by_line_of_a_running_function_is_the_phase_that_timing_records() -> None:
    timing = Timing()

    def where() -> str:
        frames = [Frame(f.function, f.filename, f.lineno) for f in reversed(inspect.stack()[1:])]
        return phase_by_line(frames)

    with timing.add_time("outer"):
        with timing.add_time("inner"):
            inner = where()
        outer = where()
    assert [outer, inner] == [phase.name for phase in timing.phases()]


def test_the_phase_by_clock_is_the_innermost_open_span() -> None:
    timing = Timing()
    timing.spans = log = SpanLog()
    seen: list[tuple[int, str]] = []

    def look(phase: str) -> None:
        time.sleep(0.0001)
        seen.append((time.perf_counter_ns(), phase))
        time.sleep(0.0001)

    for _ in range(3):
        look("")
        with timing.add_time("a"):
            look("a")
            with timing.add_time("b"):
                look("a/b")
            with timing.add_time("c"):
                look("a/c")
                with timing.add_time("b"):
                    look("a/c/b")
            look("a")
    times = np.array([when for when, _ in seen])
    shuffled = np.random.default_rng(0).permutation(len(seen))
    phases, index = phases_by_clock(log, log.threads[0].native_id, times[shuffled])
    assert [phases[i] for i in index] == [seen[i][1] for i in shuffled]


def test_a_thread_without_spans_is_outside_all_phases() -> None:
    phases, index = phases_by_clock(SpanLog(), 1, np.array([5, 6]))
    assert [phases[i] for i in index] == ["", ""]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(0, 2000))
def test_by_clock_agrees_with_a_scan_over_the_spans(steps: list[int], when: int) -> None:
    log = SpanLog()
    log.paths = ["a", "a/b"]
    data = log.open_thread("MainThread", 7).data
    clock = 0
    for step in steps:  # a, with b inside it, then a gap
        data.extend((1, clock + step, clock + 2 * step, 0, clock, clock + 3 * step))
        clock += 4 * step
    phases, index = phases_by_clock(log, 7, np.array([when]))
    inside = [span for span in log if span.start_ns <= when < span.end_ns]
    expected = max(inside, key=lambda span: len(span.path)).path if inside else ""
    assert phases[index[0]] == expected
