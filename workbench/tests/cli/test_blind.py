"""What a change touches and no benchmark reaches is told; the verdicts stay as they are."""

from pathlib import Path
from typing import Any

import pytest
import small_projects
import strangers
import toy_packages
from strangers import SHORT, SPENT

from rlox_opt.harness.packages import Packages
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.project import blind
from rlox_opt.project.blind import Touched

BEFORE = '''
import functools, threading

def seen(n):
    return sum(range(n))

def unseen(n):
    return n

def told(n):
    """One thing."""
    return n

def in_thread(n):
    return n

class Thing:
    @property
    def size(self):
        return 1

    def weight(self):
        return 1

    def make(self):
        def inner():
            return 1
        return inner
'''
AFTER = '''
import functools, threading

def told(n):
    """Another thing."""
    # and a comment
    return n

def seen(n):
    return sum(range(n + 1))

def unseen(n):
    return n + 1

def in_thread(n):
    return n + 1

class Thing:
    @property
    @functools.lru_cache()
    def size(self):
        return 2

    def weight(self):
        return 2

    def make(self):
        def inner():
            return 2
        return inner

    async def fresh(self):
        return 1
'''
SUITE = """
import threading
import thing

class Of:
    def setup(self):
        self.thing = thing.Thing()
        self.inner = self.thing.make()
        thing.unseen(3)  # which is not timed
        self.left = [1]

    def time_seen(self):
        thing.seen(10)
        self.left.pop()

    def time_thread(self):
        one = threading.Thread(target=thing.in_thread, args=[1])
        one.start()
        one.join()

    def time_class(self):
        self.thing.size
        self.inner()

def time_fails():
    raise ValueError("no")
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, whose last commit but one changes some functions, and the last one none."""
    folder = tmp_path_factory.mktemp("blind") / "it"
    files = small_projects.own(BEFORE, **{"asv.conf.json": strangers.ASV, "fast.c": "int a;\n"})
    files |= {"benchmarks/__init__.py": "", "benchmarks/of.py": SUITE, "helper.py": "A = 1\n"}
    helper = "def no_part_of_the_package():\n    pass\n"
    small_projects.repository(
        folder, files, {"thing.py": AFTER, "fast.c": "int b;\n", "helper.py": helper}
    )
    return folder


def diff(root: Path, *words: str) -> dict[str, Any]:
    said: dict[str, Any] = strangers.asked_here(root, "diff", "HEAD~1", "HEAD", *words)
    return said


def test_functions_that_change_and_no_benchmark_reaches_are_named(root: Path) -> None:
    found = diff(root, *SHORT, "--bench", "time_")
    lines = AFTER.splitlines()
    assert [(of["function"], lines[of["line"] - 1].strip()) for of in found["blind"]] == [
        ("unseen", "def unseen(n):"),
        ("Thing.weight", "def weight(self):"),
        ("Thing.fresh", "async def fresh(self):"),
    ]
    assert {of["file"] for of in found["blind"]} == {"thing.py"}
    assert found["coverage"] == {
        "touched": 7,
        "traced": ["of.Of.time_class", "of.Of.time_seen", "of.Of.time_thread"],
        "untraced": ["of.time_fails"],
        "compiled": ["fast.c"],
    }
    assert len(found["results"]) == 3


def test_people_are_told_in_two_lines(root: Path) -> None:
    done = strangers.here(root, "diff", "HEAD~1", "HEAD", *SHORT, "--bench", "time_class")
    assert done.returncode == 0, done.stderr
    assert (
        "Blind: no benchmark of the 1 traced reaches seen (thing.py:9), unseen (thing.py:12), "
        "in_thread (thing.py:15) and 2 more, of 7 functions that the change touches."
    ) in done.stdout
    assert (
        "Compiled: not decided whether a benchmark reaches what changes in fast.c." in done.stdout
    )


def test_what_there_was_no_time_to_trace_is_not_called_blind(tmp_path: Path) -> None:
    packages = Packages(
        {"head": Side(toy_packages.package(tmp_path), ("toy",))},
        Suite(toy_packages.benchmarks(tmp_path)),
        60.0,
    )
    touched = Touched("toy/__init__.py", 7, "work", "toy/__init__.py")
    of = blind.Coverage((touched,), traced=["toys.time_steady"], untraced=["toys.time_raises"])
    blind.look(of, packages, ["toys.time_work", "toys.time_new"], 0.0)
    assert [*blind.told(of)] == [
        "Not decided whether a benchmark reaches work (toy/__init__.py:7), of 1 functions that the "
        "change touches: no time to trace toys.time_work, toys.time_new; a larger --budget traces "
        "more; 1 could not be traced."
    ]
    assert not of.decided()


def test_it_can_be_left_out(root: Path) -> None:
    found = diff(root, *SPENT, "--bench", "time_class", "--no-coverage")
    assert found["blind"] is found["coverage"] is None
    assert len(found["results"]) == 1
