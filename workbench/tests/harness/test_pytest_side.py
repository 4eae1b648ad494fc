"""A side of a suite of pytest: what its tests say, and how each is told, in the process itself."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from pytest_sides import asked, names, prepared

from rlox_opt.harness.packages import Failure, Packages
from rlox_opt.harness.restarts import ContestError, Worker
from rlox_opt.harness.side_processes import Side
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.kinds.pytest_benchmarks import Pytest

pytestmark = pytest.mark.usefixtures("short_contests")

WAYS = """
import unittest
import asyncio, pytest, thing

def test_what_was_built(codspeed_benchmark):
    assert codspeed_benchmark(thing.work, [1, 2]) == -1, "the source beside the tests is not it"

class TestOfUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def given(self, benchmark):
        self.benchmark = benchmark
    def test_method(self):
        self.benchmark(thing.work, [1])

@pytest.fixture(scope="module")
def made():
    made.times += 1
    return made.times
made_fixture, made = made, type("made", (), {"times": 0})

@pytest.mark.codspeed_benchmark
@pytest.mark.timeout(5)
def test_marked(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("x")

@pytest.mark.benchmark
@pytest.mark.skipif(True, reason="of no use here")
class TestSkipped:
    def test_method(self): ...

def test_no_benchmark(): ...
"""


def test_ways_to_write_a_benchmark(tmp_path: Path) -> None:
    with asked(tmp_path, WAYS) as ask:
        there = names(ask)
        assert [*there] == [
            "test_what_was_built", "TestOfUnittest::test_method", "test_marked",
            "TestSkipped::test_method",
        ]  # fmt: skip
        assert there["test_marked"] == ["time", None, 5.0]
        for name in [*there][:3]:
            assert prepared(ask, name) == 0
            seconds, whole, _ = ask("time", 0, 3, 1)
            assert 0 < seconds <= whole
            assert ask("forget", 1) is None
        with pytest.raises(ContestError, match="of no use here"):
            prepared(ask, "TestSkipped::test_method")
    assert not [*(tmp_path / "user").rglob("__pycache__")], "it ran in a copy"


CHILD = """
import os, subprocess, sys

def child(benchmark, *words, **more):
    # In the working folder lie the sources beside the tests.
    benchmark(subprocess.run, [sys.executable, *words], check=True, **more)

BUILT = "import thing; assert thing.work([1]) == -1"

def test_beside_the_sources(benchmark):
    child(benchmark, "-c", BUILT)

def test_of_a_module(benchmark):
    child(benchmark, "-m", "asks")

def test_elsewhere(benchmark, tmp_path):
    child(benchmark, "-c", BUILT, cwd=tmp_path)

def test_without_our_variables(benchmark, tmp_path):
    env = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    child(benchmark, "-c", BUILT, cwd=tmp_path, env=env)

def test_what_the_environment_runs_first(benchmark, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.theirs = True")
    env = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{tmp_path}"}
    child(benchmark, "-c", f"import sys; assert sys.theirs; {BUILT}", env=env)
"""


def test_a_python_that_a_test_starts_finds_what_was_built(tmp_path: Path) -> None:
    asks = {"asks.py": "import thing\n\nassert thing.work([1]) == -1\n"}
    with asked(tmp_path, CHILD, more=asks) as ask:
        for name in names(ask):
            assert prepared(ask, name) == 0
            assert ask("forget", 1) is None


def test_the_value_of_an_unknown_option_is_no_folder_of_tests(tmp_path: Path) -> None:
    more = {
        "pytest.ini": "[pytest]\naddopts = --cov another --cov-report term --unheard-of another\n",
        "another/conftest.py": "raise OSError('not of these tests')\n",
    }
    with asked(tmp_path, "def test_it(benchmark):\n    benchmark(int)\n", more=more) as ask:
        assert prepared(ask, "test_it") == 0


WRONG = """
import os, sys, pytest

def test_twice(benchmark):
    benchmark(int)
    benchmark(int)

def test_raises(benchmark):
    benchmark(lambda: 1 // 0)

def test_exits(benchmark):
    benchmark(sys.exit, 3)

def test_ends_pytest(benchmark):
    benchmark(pytest.exit, "enough")

def test_one_setup(benchmark):
    benchmark.pedantic(int, setup=lambda: ((), {}), iterations=2)

@pytest.fixture
def broken():
    raise OSError("no such place")

def test_of_a_fixture(benchmark, broken): ...

@pytest.fixture
def broken_at_its_end():
    yield
    raise OSError("still open")

def test_at_its_end(benchmark, broken_at_its_end):
    benchmark(int)

def test_wears_out(benchmark):
    left = [1, 2, 3]
    benchmark(left.pop)

def test_good(benchmark):
    benchmark(int)
"""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A process with this suite, whose next test is measured whatever the last one did."""
    with asked(tmp_path_factory.mktemp("wrong"), WRONG) as ask:
        yield ask


@pytest.mark.parametrize(
    ("name", "told", "when"),
    [
        ("twice", "RuntimeError: the fixture `benchmark` can be used once", "forget"),
        ("raises", "ZeroDivisionError: integer", "prepare"),
        ("exits", "SystemExit: 3", "prepare"),
        ("ends_pytest", "Exit: enough", "prepare"),
        ("one_setup", "iterations is 2; with a `setup` it takes 1", "prepare"),
        ("of_a_fixture", "its setup fails: OSError: no such place", "prepare"),
        ("at_its_end", "its teardown fails: OSError: still open", "forget"),
        ("wears_out", "IndexError: pop from empty list", "time"),
    ],
)
def test_what_goes_wrong_is_told_and_the_next_is_measured(
    name: str, told: str, when: str, wrong: Worker
) -> None:
    with pytest.raises(ContestError, match=told):
        prepared(wrong, f"test_{name}")
        assert when != "prepare"
        wrong("time", 0, 5 if when == "time" else 1, 0)
        assert when != "time"
        wrong("forget", 1)
    assert prepared(wrong, "test_good") == 0
    wrong("time", 0, 5, 0)
    assert wrong("forget", 1) is None


def test_a_hang_ends_its_process_alone(tmp_path: Path) -> None:
    suite = "import time\n\ndef test_hangs(benchmark):\n    benchmark(time.sleep, 60)\n"
    with asked(tmp_path, suite) as ask:
        names(ask)
        ask.limit_s = 0.5
        with pytest.raises(ContestError, match="did not answer within"):
            prepared(ask, "test_hangs")


def test_a_python_without_pytest_is_told_with_the_remedy(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    told = pytest.raises(ContestError, match=r"has no pytest, which .*; name pytest .* --with")
    with asked(tmp_path, WRONG, str(bare / "bin" / "python")) as ask, told:
        names(ask)


CHANGED = """
import time

def test_of_a_still_clock(benchmark, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    benchmark(sum, range(1000))

def test_that_bears_three(benchmark):
    left = [1, 2, 3]
    benchmark.pedantic(left.pop, rounds=3)
    assert len(left) in (0, 1, 2)
"""


def test_calls_are_timed_and_sampled_whatever_a_test_does(tmp_path: Path) -> None:
    with asked(tmp_path, CHANGED) as ask:
        for name, bears in (("test_of_a_still_clock", 0), ("test_that_bears_three", 3)):
            assert prepared(ask, name) == bears
            ask("call", 7)
            assert min(ask("time", 0, 7, 1)) > 0
            assert ask("forget", 1) is None


PEDANTIC = """
import random

def test_short(benchmark):
    total = []
    benchmark.pedantic(total.append, args=(1,), rounds=20, iterations=1000)
    benchmark.extra_info["rate"] = 1 / benchmark.stats["mean"]

def test_drawn(benchmark):
    drawn = random.random()
    benchmark.pedantic(lambda: open({told!r}, "a").write(f"{drawn}\\n"), iterations=2)
"""


def test_pedantic_calls_are_timed_together_and_tell_their_times(tmp_path: Path) -> None:
    told = tmp_path / "drawn"
    with asked(tmp_path, PEDANTIC.replace("{told!r}", repr(str(told)))) as ask:
        assert prepared(ask, "test_short") == 20_000
        seconds = [ask("time", 0, 1000, 0)[0] for _ in range(5)]  # a neighbour may come for some
        assert 0 < min(seconds) / 1000 < 2e-6
        ask("forget", 1)
        assert prepared(ask, "test_drawn") == 2
        ask("time", 0, 4, 0)
        assert len({*told.read_text().split()}) == 1, "each run draws what the first drew"


def test_sides_take_turns_and_each_has_its_own_package(tmp_path: Path) -> None:
    with asked(tmp_path, "import thing\n\ndef test_it(benchmark): benchmark(thing.work, [1])\n"):
        pass
    folder, root = tmp_path / "other", tmp_path / "user"
    folder.mkdir()
    path = PurePosixPath("tests")
    laid = Pytest().laid_out(root / path, Configuration(path, path, PurePosixPath()), (), folder)
    sides = {}
    for side, text in (("base", "return 1"), ("head", "raise ValueError('not here')")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "thing.py").write_text(f"def work(data):\n    {text}\n")
        sides[side] = Side(tmp_path / side, ("thing",))
    ((name, outcome),) = Packages(sides, laid, 20.0).contests(["tests/test_it.py::test_it"], 1)
    assert name == "tests/test_it.py::test_it"
    assert outcome == Failure("head", "ValueError: not here")


# In the source, in what was built, and tests that tell which of both they have.
MODULE = "WHERE = '{where}'\n"
IN_TESTS = """
import subprocess, sys
from ..core import WHERE
from ..sub import core as of_sub
from .helpers import WHERE as of_helpers

def test_in_tests(benchmark, of_conftest):
    assert benchmark(lambda: WHERE) == of_sub.WHERE == "built"
    assert of_helpers == of_conftest == "source"
    code = "from thing.core import WHERE as core; from thing.tests.helpers import WHERE as own; "
    code += "assert (core, own) == ('built', 'source')"
    subprocess.run([sys.executable, "-c", code], check=True)
"""
IN_SUB = """
from thing.sub.core import WHERE
from . import core

def test_in_sub(benchmark, of_conftest):
    assert benchmark(lambda: WHERE) == core.WHERE == "built"
    assert of_conftest == "source"
"""
CONFTEST = "import pytest\n\n@pytest.fixture\ndef of_conftest():\n    return '{where}'\n"


def package(folder: Path, where: str) -> None:
    modules = ("__init__", "core", "sub/__init__", "sub/core", "tests/__init__", "tests/helpers")
    files = {f"{name}.py": MODULE.format(where=where) for name in modules}
    files["conftest.py"] = CONFTEST.format(where=where)
    files["tests/test_it.py"] = IN_TESTS if where == "source" else "raise ValueError"
    files["sub/test_it.py"] = IN_SUB if where == "source" else "raise ValueError"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("source", ["", "src/"])
@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_tests_within_the_package_are_the_suites_and_all_else_is_the_sides(
    source: str, mode: str, tmp_path: Path
) -> None:
    root, built, folder = tmp_path / "user", tmp_path / "built", tmp_path / "scratch"
    package(root / source / "thing", "source")
    package(built / "thing", "built")
    settings = f'[tool.pytest]\naddopts = ["--import-mode={mode}"]\n'
    (root / "pyproject.toml").write_text(settings)
    folder.mkdir()
    path = PurePosixPath()
    laid = Pytest().laid_out(root, Configuration(path, path, path), (), folder)
    packages = Packages(dict.fromkeys(("base", "head"), Side(built, ("thing",))), laid, 20.0)
    assert packages.names("time").keys() == {
        f"{source}thing/tests/test_it.py::test_in_tests",
        f"{source}thing/sub/test_it.py::test_in_sub",
    }
    for name, outcome in packages.contests([*packages.names("time")], 1):
        assert not isinstance(outcome, Failure), (name, outcome)


def test_tests_within_a_package_that_is_not_built_are_told(tmp_path: Path) -> None:
    root, built, folder = tmp_path / "user", tmp_path / "built", tmp_path / "scratch"
    package(root / "other", "source")
    (built / "thing").mkdir(parents=True)
    (built / "thing/__init__.py").write_text("")
    folder.mkdir()
    path = PurePosixPath()
    laid = Pytest().laid_out(root, Configuration(path, path, path), (), folder)
    packages = Packages({"base": Side(built, ("thing",))}, laid, 20.0)
    assert not packages.names("time")
    why = "lies within other, which is no package that was built"
    files = ("other/sub/test_it.py", "other/tests/test_it.py")
    assert packages.listed()["base"].broken == dict.fromkeys(files, why)
