"""Suites with each fault that is looked for, beside the same done well, of which none is told."""

from pathlib import Path
from typing import Any

import pytest
import small_projects
import strangers

from rlox_opt.project.lint import dynamic

UNUSED = """
class Base:
    params = [[1, 2], ["a", "b"], [7]]
    param_names = ["n", "kind", "only"]

    def setup(self, n, *rest):
        self.data = list(range(n))

class Some(Base):
    def time_ignores_kind(self, n, kind, only):
        sum(self.data)

    def time_reads_kind(self, n, kind, only):
        print(kind)

    def time_takes_all(self, *parameters):
        print(parameters)

class Cached:
    params = [1, 2]

    def setup_cache(self):
        return [3]

    def time_ignores_it(self, cache, n):
        sum(cache)

    def time_reads_it(self, cache, n):
        sum(cache * n)

class Outside(__import__("collections").UserDict):
    params = [1, 2]

    def time_nobody_knows(self, n):
        sum([1])

def setup(n=None, *_):
    pass

def time_of_module(n):
    pass

time_of_module.params = [1, 2]
"""
DRAWN = """
import random
import random as chance
import numpy as np
from numpy.random import default_rng

SEEDED = default_rng(4)

class Drawn:
    def setup(self):
        self.a = default_rng().random()
        self.b = random.Random(3)
        self.c = chance.random()
        self.d = np.random.rand(3)
        self.e = self.b.random()
        self.f = SEEDED.random()

    def time_it(self):
        pass
"""
SEEDED = """
import random

random.seed(3)

def time_drawn(data=random.random()):
    sum(range(int(9 * data)))
"""
SHARED = """
GRAPH, FIXED, AGAIN = [1], [2], []

def time_grows():
    GRAPH.append(1)

def time_reads():
    sum(GRAPH)

def time_own(GRAPH=()):
    GRAPH = [*GRAPH]
    GRAPH.append(1)

def time_fixed():
    FIXED.index(2)

class Held:
    table = {}
    counts = {}

    def setup(self):
        self.counts = {}

    def time_fills(self):
        self.table[1] = 2

    def time_looks_up(self):
        self.table.get(1)

    def time_counts(self):
        self.counts[1] = 2

    def time_count(self):
        self.counts.get(1)

class Remakes:
    def setup(self):
        global AGAIN
        AGAIN = []

    def time_appends(self):
        AGAIN.append(1)

    def time_sums(self):
        sum(AGAIN)
"""
UNCOLLECTED = """
def time_one():
    pass

def bench_two():
    pass
"""
RUNS = """
import thing

STATE = []

class Grows:
    def setup(self):
        self.data = list(range(1000))

    def time_grows(self):
        self.data.extend(range(500))
        sum(self.data)

    def time_steady(self):
        sum(self.data)

class Pops:
    def setup(self):
        self.left = [0]

    def time_pops(self):
        self.left.pop()

class Short:
    number = 1

    def setup(self):
        self.value = 1

    def time_short(self):
        self.value

class Fails:
    params = [1, 2, 3]

    def time_fails(self, n):
        thing.one(n)

    def time_skips(self, n):
        raise NotImplementedError(n)

def track_nothing():
    return thing
"""
BROKEN = "import no_such_module\n\ndef time_it():\n    pass\n"


def project(folder: Path, **modules: str) -> Path:
    files = small_projects.own("def two():\n    return 2\n")
    files |= {f"benchmarks/{name}.py": text for name, text in {"__init__": "", **modules}.items()}
    small_projects.repository(folder, files | {"asv.conf.json": strangers.ASV}, {})
    return folder


def found(root: Path, *words: str, code: int = 1) -> list[dict[str, Any]]:
    with strangers.untouched(root), pytest.MonkeyPatch.context() as now:
        # A pause that a busy machine makes must not be all the time there is for setups in a row.
        now.setattr(dynamic, "_SETUP_S", 10.0)
        told = strangers.asked_here(root, "lint-suite", *words, code=code)
    said: list[dict[str, Any]] = told["findings"]
    return said


@pytest.mark.parametrize(
    ("source", "check", "expected"),
    [
        (
            UNUSED,
            "unused parameter",
            [
                ("it.Some.time_ignores_kind", "def time_ignores_kind("),
                ("it.Cached.time_ignores_it", "def time_ignores_it("),
                ("it.time_of_module", "def time_of_module("),
            ],
        ),
        (
            DRAWN,
            "unseeded",
            [
                ("Drawn.setup", "self.a = "),
                ("Drawn.setup", "self.c = "),
                ("Drawn.setup", "self.d = "),
            ],
        ),
        (SEEDED, "unseeded", []),
        (
            SHARED,
            "shared state",
            [("it.time_grows", "def time_grows("), ("it.Held.time_fills", "def time_fills(")],
        ),
        (UNCOLLECTED, "uncollected", [("bench_two", "def bench_two(")]),
    ],
    ids=["parameters", "drawn", "seeded", "shared", "uncollected"],
)
def test_the_source_tells_what_is_wrong_and_nothing_of_what_is_not(
    tmp_path: Path, source: str, check: str, expected: list[tuple[str, str]]
) -> None:
    root = project(tmp_path / "it", it=source)
    told = found(root, "--static", code=1 if expected else 0)
    assert [(each["file"], each["check"], each["name"]) for each in told] == [
        ("benchmarks/it.py", check, name) for name, _ in expected
    ]
    for each, (_, line) in zip(told, expected, strict=True):
        assert source.splitlines()[each["line"] - 1].strip().startswith(line)


def test_each_finding_is_a_line_with_its_reason_and_remedy(tmp_path: Path) -> None:
    root = project(tmp_path / "it", it=SHARED)
    done = strangers.rlox_opt(root, "lint-suite", "--static")  # as its user starts it
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == (
        "benchmarks/it.py:4: it.time_grows: it changes GRAPH, which it.time_reads reads; what that "
        "takes depends on which ran before it, and how often; make the data in `setup`, or change "
        "a copy"
    )
    assert not (root / ".rlox-opt" / "cache" / "revisions" / "checkout").exists(), "nothing built"


def test_running_them_tells_what_fails_drifts_or_is_too_short(tmp_path: Path) -> None:
    root = project(tmp_path / "it", runs=RUNS, broken=BROKEN)
    told = found(root, "HEAD", "--base", "HEAD~1", "--budget", "200")
    assert sorted((each["check"], each["name"]) for each in told) == [
        ("below the clock", "runs.Pops.time_pops"),
        ("below the clock", "runs.Short.time_short"),
        ("drift", "runs.Grows.time_grows"),
        ("drift", "runs.Pops.time_pops"),
        ("fails", "benchmarks.broken"),
        ("fails", "runs.Fails.time_fails(1)"),
        ("fails", "runs.track_nothing"),
    ]
    of = {(each["check"], each["name"]): each for each in told}
    fails = of["fails", "runs.Fails.time_fails(1)"]
    assert fails["what"] == (
        "it fails in base and head: AttributeError: module 'thing' has no attribute 'one' "
        "(and with 2 other parameters)"
    )
    assert RUNS.splitlines()[fails["line"] - 1].strip() == "def time_fails(self, n):"
    assert of["fails", "benchmarks.broken"]["file"] == "benchmarks/broken.py"
    assert "longer" in of["drift", "runs.Grows.time_grows"]["what"]


def test_a_suite_without_a_fault_ends_with_0(tmp_path: Path) -> None:
    root = project(tmp_path / "it", it="import thing\n\ndef time_two():\n    thing.two()\n")
    assert found(root, "--budget", "100", code=0) == []


def test_what_cannot_be_asked_ends_with_2(tmp_path: Path) -> None:
    root = project(tmp_path / "it", it=UNCOLLECTED)
    for words, why in (
        (("--static", "--base", "HEAD"), "--base: nothing is run with --static"),
        (("no-such",), "'no-such': is no commit"),
        (("--bench", "nothing-so"), "matches none of the suite's benchmarks"),
    ):
        done = strangers.here(root, "lint-suite", *words)
        assert done.returncode == 2
        assert why in done.stderr
