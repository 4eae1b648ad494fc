"""Why a benchmark takes longer: small packages in which a change slows a known function, looked at
by real samplers."""

import timeit
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_history
import toy_projects

from rlox_opt.harness.restarts import ContestError
from rlox_opt.history import watched, why
from rlox_opt.project.builds import Artefact
from rlox_opt.project.commits import WORKING_TREE, Revision
from rlox_opt.project.explained import Told, Why
from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suites
from rlox_opt.sampling import perf, pyspy
from rlox_opt.views import why as views

SUITE = """
import toy
import numpy as np

NUMBERS = list(range(5_000))
ARRAY = np.random.default_rng(0).random(20_000)

class Sums:
    def setup(self):
        self.numbers = sorted(NUMBERS * 20)  # dear, and no part of any change

    def time_work(self):
        toy.work(NUMBERS)

    time_work.number = 1

    def time_fails(self):
        toy.missing()

def time_array():
    toy.array(ARRAY)
"""
# Each change exchanges some of this: {loop} turns, and what `work` and `array` do besides.
PACKAGE = """
import time
import numpy as np


def total(numbers):
    found = 0
    for _ in range({loop}):
        for number in numbers:
            found += number
    return found


def helper(numbers):
    return [number + 1 for number in numbers]


def work(numbers):
    found = total(numbers)
    {more}
    return found


def array(of):
    np.sort(of)
    {arrays}
"""
AS_IT_WAS = {"loop": "2", "more": "pass", "arrays": "pass"}


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout whose toy packages are made beside it, with their benchmarks."""
    short = {"perf": 1.0, "py-spy": 2.0, watched.PYTHON: 1.0}
    monkeypatch.setattr(why, "_WINDOW_S", short)
    # The first round is left out where half of this is over before, as it may be on a busy machine;
    # there are more of them only while the parts are not known.
    monkeypatch.setattr(why, "CALLS_S", 10.0)
    monkeypatch.setattr(why, "BENCHMARK_S", 1.0)
    toy_history.commits(tmp_path, [{}])
    (tmp_path / "benchmarks" / "toys.py").write_text(SUITE)
    made = str(tmp_path / "benchmarks")
    project = toy_projects.of(tmp_path / "repository", suite=made, cache=str(tmp_path))
    return Suites(project).lend(Revision(WORKING_TREE, ""))[0]


def built(toys: Project, side: str, **changes: str) -> Artefact:
    folder = toys.cache / side
    (folder / "toy").mkdir(parents=True)
    text = PACKAGE.format(**{**AS_IT_WAS, **changes})
    (folder / "toy" / "__init__.py").write_text(text)
    return Artefact(Revision("HEAD", "HEAD"), folder, (), {}, 0.0, packages=("toy",))


def looked(
    toys: Project, benchmark: str, ratio: float = 0.0, sampled_s: float = 1.0, **changes: str
) -> Why:
    """What is found of a change; its true ratio is measured, unless it is given."""
    sides = built(toys, "before"), built(toys, "after", **changes)
    ratio = ratio or times_as_long(benchmark, changes)
    return why.of_benchmark(toys, *sides, f"toys.{benchmark}", ratio, seconds=sampled_s)


def times_as_long(benchmark: str, changes: dict[str, str]) -> float:
    """How many times as long a call takes with the changes: the least times, taken in turn."""
    calls = called(benchmark, {}), called(benchmark, changes)
    turns = [[timeit.timeit(call, number=5) for call in calls] for _ in range(20)]
    before, after = map(min, zip(*turns, strict=True))
    return after / before


def called(benchmark: str, changes: dict[str, str]) -> Callable[[], object]:
    """The function of the benchmark with its argument."""
    toy: dict[str, Any] = {}
    exec(compile(PACKAGE.format(**{**AS_IT_WAS, **changes}), "toy", "exec"), toy)
    rng = np.random.default_rng(0)
    function, argument = {
        "Sums.time_work": ("work", list(range(5_000))),
        "time_array": ("array", rng.random(20_000)),
    }[benchmark]
    return partial(toy[function], argument)


def named(of: Sequence[Told]) -> list[str]:
    return [told.where for told in of if told.surely]


needs_both = pytest.mark.skipif(
    bool(perf.unavailable() or pyspy.unavailable()), reason="perf or py-spy cannot be used here"
)
needs_pyspy = pytest.mark.skipif(bool(pyspy.unavailable()), reason="py-spy cannot be used here")


@needs_pyspy
def test_a_loop_that_turns_more_often_is_named_with_its_line(
    toys: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(why._WINDOW_S, "perf", 0.5)
    # Beside other programs a round has too few samples; it ends as soon as the parts are known.
    found = looked(toys, "Sums.time_work", sampled_s=20.0, loop="6")
    assert named(found.functions) == ["toy/__init__.py:total"]
    assert found.functions[0].part == pytest.approx(1, abs=0.2)
    assert found.functions[0].in_diff
    assert named(found.touched) == ["toy/__init__.py:total"]
    assert named(found.layers) == ["own Python"], found
    hot = {of.text for of in found.lines}
    assert hot <= {"for number in numbers:", "found += number"}
    assert hot


@needs_pyspy
@pytest.mark.slow
def test_what_the_change_calls_more_often_is_named_beside_the_function_that_it_touches(
    toys: Project,
) -> None:
    # Most of the time, so that an error of the ratio, which is measured apart, changes little.
    found = looked(toys, "Sums.time_work", more="[helper(numbers) for _ in range(12)]")
    assert found.functions[0].name == "helper"
    assert found.functions[0].in_diff is False
    assert named(found.touched) == ["toy/__init__.py:work"]
    (line,) = [of for of in found.lines if of.in_diff] or [None]
    assert line is None or line.text == "[helper(numbers) for _ in range(12)]"


@pytest.mark.slow
@needs_pyspy
def test_two_functions_that_share_the_change_are_both_named(toys: Project) -> None:
    found = looked(toys, "Sums.time_work", loop="4", more="[helper(numbers) for _ in '123']")
    assert {of.name for of in found.functions} >= {"total", "helper"}
    assert {of.name for of in found.touched} == {"total", "work"}


@pytest.mark.slow
@needs_both
def test_more_of_numpy_is_told_as_such_with_who_calls_it(toys: Project) -> None:
    found = looked(toys, "time_array", arrays="np.sort(of)")
    assert named(found.layers) == ["NumPy"]
    assert found.layers[0].part == pytest.approx(1, abs=0.2)
    assert named(found.touched) == ["toy/__init__.py:array"]
    assert [of.text for of in found.lines if of.in_diff] == ["np.sort(of)"]
    assert all("numpy" in of.place for of in found.native)


@pytest.mark.slow
@needs_both
def test_a_sleep_is_idle_and_its_line_is_named(toys: Project) -> None:
    found = looked(toys, "Sums.time_work", more="time.sleep(0.004)")
    assert named(found.layers) == ["Idle"]
    assert found.touched[0].name == "work"
    assert found.lines[0].text == "time.sleep(0.004)"
    assert found.lines[0].in_diff


@needs_both
def test_the_calls_of_a_benchmark_are_told_by_layer_function_and_line(
    toys: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(why._WINDOW_S, "perf", 0.5)  # a round more where one has too few samples
    found = why.of_calls(toys, built(toys, "before"), "toys.Sums.time_work")
    assert named(found.layers)[0] == "own Python"
    assert named(found.functions) == ["toy/__init__.py:total"]
    assert {of.text for of in found.lines} <= {"for number in numbers:", "found += number"}
    assert not found.touched
    told = list(views.of_one(found))
    assert told[0] == "Where the calls of toys.Sums.time_work spend their time"
    assert told[2].endswith(" own Python")


@pytest.mark.slow
@needs_both
@pytest.mark.parametrize("without", ["", "perf"])
def test_a_history_keeps_the_layer_and_the_function(
    toys: Project, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    if without:
        monkeypatch.setattr(perf, "unavailable", lambda: "perf is away; get it")
    sides = built(toys, "before"), built(toys, "after", loop="6")
    found, cause = why.with_cause(toys, *sides, "toys.Sums.time_work", 3.0)
    assert cause.layer == "python"
    assert sum(cause.layers.values()) == pytest.approx(1, abs=0.05)
    assert cause.function == "toy/__init__.py:total"
    assert cause.function_share == pytest.approx(1, abs=0.2)
    assert found.missing == (["the kernel's part: perf is away; get it"] if without else [])


@pytest.mark.slow
@needs_pyspy
def test_what_grew_by_less_than_the_samples_can_tell_is_not_named(toys: Project) -> None:
    found = looked(toys, "Sums.time_work", 1.002)
    assert not any(of.surely for of in (*found.functions, *found.touched, *found.lines))


def test_without_any_sampler_it_says_so_and_names_nothing(
    toys: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "unavailable", lambda sampler: f"no {sampler}; get one")
    found = looked(toys, "time_array", 2.0)
    assert found.missing == [
        "anything at all, for no sampler works here: no perf; get one; no python; get one"
    ]
    assert not found.layers
    assert not found.functions


@needs_pyspy
def test_a_benchmark_that_fails_is_told_with_its_reason(toys: Project) -> None:
    found = looked(toys, "Sums.time_fails", 2.0, sampled_s=60.0)  # each sampler is asked once
    assert found.missing
    assert all("has no attribute 'missing'" in of for of in found.missing)


def test_a_suite_that_cannot_be_read_raises(toys: Project) -> None:
    sides = built(toys, "before"), built(toys, "after")
    with pytest.raises((ContestError, KeyError, LookupError)):
        why.of_benchmark(toys, *sides, "toys.none", 2.0, seconds=60.0)
