"""Whole asv suites, read as asv reads them, and hostile ones, which lose their own results."""

import ast
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy_packages
from asv_runner.discovery import disc_benchmarks

from rlox_opt.harness import side_processes
from rlox_opt.harness.packages import Failure, Packages, Reading
from rlox_opt.harness.side_processes import Side, Suite

INSIDE = Path(side_processes.__file__).parent / "inside"
FEATURES = """
import enum
from . import base
from .base import Inherited

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

class Thing:
    pass

def time_plain():
    sum(range(100))

class Enums(base.Inherited):
    params = Colour
    param_names = ["colour"]

    def time_colour(self, colour):
        assert isinstance(colour, Colour)

class Lazy:
    params = ([1, 2], (Thing() for _ in range(2)), ["a", "a", "b"])

    def time_lazy(self, n, thing, text):
        assert isinstance(thing, Thing)

class TimeSuite:
    def time_it(self):
        pass

    time_it.benchmark_name = "renamed.time_it"

    def _time_private(self):
        pass

    def helper(self):
        pass

class _Private:
    def time_hidden(self):
        pass

def track_number():
    return 42

def mem_list():
    return [0] * 256

def peakmem_list():
    return [0] * 256

def timeraw_import():
    return '''
    import xml.dom.minidom
    '''

def timeraw_with_setup():
    return "  f()", "  def f(): pass"
"""
BASE = """
class Inherited:
    number_of = 3

    def setup(self, *parameters):
        self.value = 7

    def time_inherited(self, *parameters):
        assert self.value == 7
"""
CHANGES = """
import os

class Pops:
    def setup(self):
        self.left = [0]

    def time_pop(self):
        self.left.pop()

class Drains:
    def setup(self):
        self.left = list(range(20_000))

    def time_drain(self):
        while self.left:
            self.left.pop()

class Numbered:
    number = 3

    def setup(self):
        self.left = 3

    def time_thrice(self):
        assert self.left > 0, "more calls than the suite says"
        self.left -= 1

class Steady:
    def setup(self):
        self.numbers = list(range(2_000))

    def time_steady(self):
        sum(self.numbers)

class Warm:
    warmup_time = 0.02
    calls = 0

    def time_warm(self):
        type(self).calls += 1
"""
Make = Callable[..., Packages]


@pytest.fixture
def asv(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], dict[str, str]]]:
    """The benchmarks that asv finds in a folder, with its types of them."""
    before = {*sys.modules}

    def found(folder: Path) -> dict[str, str]:
        monkeypatch.syspath_prepend(folder.parent)
        names = {}
        for benchmark in disc_benchmarks(str(folder), ignore_import_errors=True):
            names[benchmark.name] = benchmark.type
        return names

    yield found
    for name in {*sys.modules} - before:
        del sys.modules[name]


def test_a_suite_has_the_benchmarks_that_asv_finds_in_it(
    made: Make, asv: Callable[[Path], dict[str, str]]
) -> None:
    packages = made(base=BASE, features=FEATURES)
    listed = packages.listed()["head"]
    assert not listed.broken
    of = {"peakmemory": "peakmemory", "memory": "memory", "track": "track"}
    assert {
        name.partition("(")[0]: of.get(b.type, "time") for name, b in listed.benchmarks.items()
    } == asv(packages.suite.folder)


def test_each_combination_of_parameters_is_one_named_as_asv_prints_it(made: Make) -> None:
    names = [*made(base=BASE, features=FEATURES).names("time")]
    colours = [name for name in names if "time_colour" in name]
    assert colours == [
        "features.Enums.time_colour(<Colour.RED: 1>)",
        "features.Enums.time_colour(<Colour.BLUE: 2>)",
    ]
    lazy = [name.partition("(")[2] for name in names if "time_lazy" in name]
    assert len(lazy) == 2 * 2 * 3
    assert "at 0x" not in "".join(lazy)
    assert "1, <benchmarks.features.Thing object> (0), 'a' (1))" in lazy


def test_every_kind_of_benchmark_is_measured(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    # A `timeraw` starts a new interpreter for each call.
    monkeypatch.setattr(side_processes, "_LEAST_ROUNDS", ((side_processes._LONG_S, 1),))
    packages = made(base=BASE, features=FEATURES)
    times = dict(packages.contests([*packages.names("time")], 1))
    assert {name: of for name, of in times.items() if not isinstance(of, Reading)} == {}
    assert times["features.timeraw_import"].base > times["features.timeraw_with_setup"].base  # type: ignore[union-attr]
    tracked = dict(packages.tracked(["features.track_number", "features.mem_list"], 1))
    assert tracked["features.track_number"] == Reading(0.0, 0.0, 42, 42)
    memory = tracked["features.mem_list"]
    if isinstance(memory, Failure):
        assert "pympler" in memory.reason
    else:
        assert memory.base > 256 * 4
    ((_, peak),) = packages.peaks(["features.peakmem_list"], 1)
    assert isinstance(peak, Reading)


def test_a_python_that_a_benchmark_starts_finds_the_package_of_its_side(made: Make) -> None:
    packages = made(
        children="""
import subprocess, sys, toy

def track_child():
    says = [sys.executable, "-c", "import toy; print(toy.__file__)"]
    done = subprocess.run(says, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == toy.__file__
    return 1
"""
    )
    (outcome,) = packages.tracked(["children.track_child"], 1)
    assert outcome[1] == Reading(0.0, 0.0, 1, 1)


def test_what_is_tracked_is_called_once(made: Make) -> None:
    packages = made(
        tracked="""
class Calls:
    def setup(self):
        self.calls = 0

    def track_calls(self):
        self.calls += 1
        return self.calls

def track_skips():
    raise NotImplementedError("not here")
"""
    )
    found = dict(packages.tracked(["tracked.Calls.track_calls", "tracked.track_skips"], 1))
    assert found["tracked.Calls.track_calls"] == Reading(0.0, 0.0, 1, 1)
    assert getattr(found["tracked.track_skips"], "skipped", False)


def test_what_changes_what_its_setup_made_is_set_up_for_each_call_and_other_things_are_not(
    made: Make,
) -> None:
    packages = made(changes=CHANGES)
    names = [*packages.names("time")]
    found = dict(packages.contests(names, 1))
    assert {name: of for name, of in found.items() if not isinstance(of, Reading)} == {}
    bears = {name.rpartition(".")[2]: packages._alone[name] for name in names}
    assert bears == {
        "time_pop": 1, "time_drain": 1, "time_thrice": 3, "time_steady": 0, "time_warm": 0
    }  # fmt: skip
    drain = found["changes.Drains.time_drain"]
    assert isinstance(drain, Reading)
    assert drain.base > 100e-6  # 20 000 pops, and not the test of an empty list


def test_both_sides_draw_the_same_data(made: Make) -> None:
    """Or what a benchmark draws would be taken for what the commit does."""
    packages = made(
        drawn="""
import random
AT_IMPORT = random.random()

class Drawn:
    def setup(self):
        self.value = random.random()

    def track_drawn(self):
        return 1 + AT_IMPORT + self.value
"""
    )
    values = set()
    for seed in range(2):
        ((_, of),) = packages.tracked(["drawn.Drawn.track_drawn"], seed)
        assert isinstance(of, Reading)
        assert of.log_ratio == of.log_ratio_aa == 0
        values.add(of.base)
    assert len(values) == 2  # and each restart others


@pytest.mark.parametrize("made", ["a process each"], indirect=True)  # as peaks always have
def test_both_sides_hold_the_same_data(made: Make) -> None:
    packages = made(
        held="""
import random

def peakmem_drawn():
    return bytearray(random.randrange(1, 100) * 1_000_000)
"""
    )
    ((_, of),) = packages.peaks(["held.peakmem_drawn"], 1)
    assert isinstance(of, Reading)
    assert abs(of.log_ratio) < 0.1
    assert abs(of.log_ratio_aa) < 0.1


def test_as_many_calls_follow_a_setup_as_the_suite_says(made: Make) -> None:
    packages = made(
        numbered="""
class Numbered:
    number = 1000
    def setup(self):
        sum(range(20_000))
        self.calls = 0
    def time_short(self):
        self.calls += 1
"""
    )
    ((_, of),) = packages.contests(["numbered.Numbered.time_short"], 1)
    assert isinstance(of, Reading)
    assert of.base < 2e-6  # a call alone after a setup takes several microseconds


def test_setup_cache_is_made_once_read_by_all_and_its_files_are_there(
    made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE", str(tmp_path / "made"))
    packages = made(
        cached="""
import os
from pathlib import Path

class Cached:
    def setup_cache(self):
        with open(os.environ["MADE"], "a") as file:
            file.write("made\\n")
        Path("beside.txt").write_text("beside")
        return {"number": 5}

    def track_one(self, cache):
        assert Path("beside.txt").read_text() == "beside"
        return cache["number"]

    def track_two(self, cache):
        return cache["number"] + 1

class Fails:
    def setup_cache(self):
        raise ValueError("no disk")

    def track_it(self, cache):
        return 1
"""
    )
    names = [*packages.names("track")]
    for seed in range(2):
        found = dict(packages.tracked(names, seed))
        assert found["cached.Cached.track_one"] == Reading(0.0, 0.0, 5, 5)
        assert found["cached.Cached.track_two"] == Reading(0.0, 0.0, 6, 6)
        failure = found["cached.Fails.track_it"]
        assert isinstance(failure, Failure)
        assert failure.reason == "its setup_cache fails: ValueError: no disk"
    # base and head made one each; base once more has that of base.
    assert Counter((tmp_path / "made").read_text().split()) == {"made": 2}


def test_the_project_beside_the_suite_is_not_imported_in_place_of_the_build(
    made: Make, tmp_path: Path
) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").write_text("raise RuntimeError('these are the sources')")
    packages = made(own="import toy\n\ndef track_size():\n    return toy.SIZE\n")
    assert dict(packages.tracked(["own.track_size"], 1)) == {
        "own.track_size": Reading(0.0, 0.0, 10, 10)
    }


def runs(python: str) -> bool:
    """Some on PATH stand for one that is not there."""
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def test_a_side_may_have_another_interpreter(tmp_path: Path) -> None:
    there = (shutil.which(f"python3.{minor}") for minor in range(8, 20))
    other = next((path for path in there if path and runs(path)), None)
    if other is None:
        pytest.skip("no other interpreter is on PATH")
    benchmarks = toy_packages.benchmarks(tmp_path)
    (benchmarks / "version.py").write_text(
        "import sys\ndef track_minor():\n    return sys.version_info.minor\n"
    )
    folder = toy_packages.package(tmp_path)
    sides = {
        "base": Side(folder, ("toy",), other), "head": Side(folder, ("toy",), sys.executable)
    }  # fmt: skip
    packages = Packages(sides, Suite(benchmarks), 30.0)
    ((_, minor),) = packages.tracked(["version.track_minor"], 1)
    assert isinstance(minor, Reading)
    assert minor.head == sys.version_info.minor
    ((_, work),) = packages.contests(["toys.time_work"], 1)
    assert isinstance(work, Reading)
    assert math.isfinite(work.log_ratio)


@pytest.mark.parametrize("path", sorted(INSIDE.glob("*.py")), ids=lambda path: path.stem)
def test_what_runs_in_a_side_is_the_standard_library_of_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    others = imported - {*sys.stdlib_module_names} - {of.stem for of in INSIDE.glob("*.py")}
    # What suites take for granted: those with mem_ benchmarks, and those of pytest.
    of_tests = {"pytest", "_pytest"} if path.stem == "rlox_opt_tests" else set()
    assert others <= {"pympler"} | of_tests
