"""Packages side by side in one process: each benchmark meets its own, and fails alone."""

import itertools
import math
import os
import random
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import toy_packages

from rlox_opt.harness import packages as packages_module
from rlox_opt.harness.packages import Failure, Packages, Reading
from rlox_opt.harness.restarts import ContestError
from rlox_opt.harness.side_processes import Side, Suite

Make = Callable[..., Packages]

PREPARED = """
import os
import toy

def note(*what):
    with open(os.environ["TOY_NOTES"], "a") as file:
        print(toy.NAME, *what, file=file)

class Prepared:
    params = (1, 2)
    param_names = ("n",)

    def setup_cache(self):
        note("setup_cache")
        return list(range(500))

    def setup(self, cache, n):
        note("setup", len(cache), n)
        self.numbers = cache * n

    def time_prepared(self, cache, n):
        assert len(self.numbers) == n * len(cache), "setup is not of this n"
        sum(self.numbers)

    def track_prepared(self, cache, n):
        return len(self.numbers)

    def teardown(self, cache, n):
        note("teardown", len(cache), n)
        del self.numbers

class Skipped:
    def setup(self):
        raise NotImplementedError("not on this machine")

    def time_skipped(self):
        pass
"""

LEAVES = """
import gc
import os

def time_fails():  # where it is moved to one core, or else where the garbage collector is off
    if os.environ["TOY_FAILS"] == "late" and len(os.sched_getaffinity(0)) > 1:
        return
    raise RuntimeError("no such thing")

def track_cores():
    return len(os.sched_getaffinity(0))

def track_collects():
    return 1 + gc.isenabled()
"""

MEETING = """
import os
import time

def met():
    folder = os.environ["TOY_MEETING"]
    open(os.path.join(folder, str(os.getpid())), "w").close()
    end = time.monotonic() + 20
    while len(os.listdir(folder)) < 3:
        if time.monotonic() > end:
            raise RuntimeError("the others do not come")
        time.sleep(0.01)

if "TOY_MEETING" in os.environ:
    met()

def time_nothing():
    pass
"""


# Where both kinds of packages do the same.
ONCE = pytest.mark.parametrize("make", ["a process each"], indirect=True)


@pytest.fixture(params=["a process each", "one process"])
def make(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Packages from the settings of base and head. Contests are short: what is compared differs by
    much, or is not looked at."""
    monkeypatch.setattr(packages_module, "_CONTEST_S", 0.01)
    benchmarks = toy_packages.benchmarks(tmp_path)

    def of(base: dict[str, object], head: dict[str, object]) -> Packages:
        sides = {
            side: Side(toy_packages.package(tmp_path / side, **settings), ("toy",))  # type: ignore[arg-type]
            for side, settings in (("base", base), ("head", head), ("again", base))
        }
        suite = Suite(benchmarks, ("benchmarks.inputs",))
        return Packages(sides, suite, 30.0, together=request.param == "one process")

    return of


def restarted(packages: Packages) -> list[Reading]:
    """Three restarts of `time_work`, of which a neighbour on the machine may disturb one."""
    readings = []
    for seed in range(3):
        ((name, reading),) = packages.contests(["toys.time_work"], seed)
        assert name == "toys.time_work"
        assert isinstance(reading, Reading)
        readings.append(reading)
    return readings


def assert_ten_times_the_time(readings: list[Reading]) -> None:
    """As ten times the work takes. Neighbours on the machine, who make a restart four times as long
    or as short, hide that from none."""
    middle = statistics.median(reading.log_ratio for reading in readings)
    assert abs(middle - math.log(10)) < math.log(4)


def test_a_side_runs_its_own_code_even_where_that_imports_late(make: Make) -> None:
    readings = restarted(make({"passes": 10}, {"passes": 100}))
    assert_ten_times_the_time(readings)
    assert min(reading.base for reading in readings) > 0


def test_two_sides_do_where_nobody_asks_for_base_again(make: Make) -> None:
    packages = make({"passes": 10, "size": 50}, {"passes": 100, "size": 100})
    del packages.sides["again"]  # type: ignore[attr-defined]
    work = restarted(packages)
    ((_, size),) = packages.tracked(["toys.track_size"], seed=1)
    assert isinstance(size, Reading)
    assert_ten_times_the_time(work)
    assert size.log_ratio == pytest.approx(math.log(2))
    assert {size.log_ratio_aa, *(reading.log_ratio_aa for reading in work)} == {0}
    more = packages.peak("head", "toys.peakmem_held", random.Random(), 0)
    assert (
        more - packages.peak("base", "toys.peakmem_held", random.Random(), 0) > 40_000_000
    )  # bytes


def test_benchmarks_are_named_as_asv_names_them_with_the_sides_that_have_them(make: Make) -> None:
    found = make({"name": "old"}, {}).names("time")
    assert found["toys.Sized.time_sized(2)"] == ["base", "head"]
    assert found["toys.time_new"] == ["head"]
    assert "toys.track_size" not in found


def test_a_process_says_which_builds_it_has_loaded(make: Make) -> None:
    builds = make({"name": "a"}, {"name": "b"}).builds()
    assert {side: build["commit"] for side, build in builds.items()} == {
        "base": "a",
        "head": "b",
        "again": "a",
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "RuntimeError: no such thing"),
        ("crashes", "exit status 3"),
        ("hangs", "did not answer within 5 s"),
    ],
)
def test_what_fails_loses_its_own_result_and_no_other(
    make: Make, tmp_path: Path, name: str, reason: str
) -> None:
    packages = make({}, {"name": name})
    with (tmp_path / "benchmarks" / "toys.py").open("a") as suite:
        suite.write("\ntime_hangs.timeout = 0.8\n")  # an answer has that of six runs
    names = [f"toys.time_{name}", "toys.time_steady", "toys.time_work"]
    # One whose turn is between the others': processes then start for those, which have more time.
    seed = next(n for n in itertools.count() if random.Random(n).sample(names, 3)[1] == names[0])
    found = dict(packages.contests(names, seed))
    failure = found.pop(f"toys.time_{name}")
    assert isinstance(failure, Failure)
    assert failure.side == "head"
    assert reason in failure.reason
    assert all(isinstance(reading, Reading) for reading in found.values())
    assert len(found) == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are not moved here")
@pytest.mark.parametrize("when", ["early", "late"])
def test_what_fails_leaves_neither_its_core_nor_the_garbage_uncollected(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setenv("TOY_FAILS", when)
    packages = make({}, {})
    (tmp_path / "benchmarks" / "leaves.py").write_text(LEAVES)
    rng = random.Random(1)
    with packages._running(rng) as running:
        packages._contest(running, "leaves.time_fails", rng)
        cores = packages._tracked(running, "leaves.track_cores", rng)
        collects = packages._tracked(running, "leaves.track_collects", rng)
    assert isinstance(cores, Reading)
    assert isinstance(collects, Reading)
    assert (cores.base, collects.base) == (len(os.sched_getaffinity(0)), 2)


def test_values_are_compared_and_peaks_in_processes_of_their_own(make: Make) -> None:
    packages = make({"size": 50}, {"size": 100})
    ((_, size),) = packages.tracked(["toys.track_size"], seed=1)
    ((_, peak),) = packages.peaks(["toys.peakmem_held"], seed=1)
    assert isinstance(size, Reading)
    assert isinstance(peak, Reading)
    assert size.log_ratio == pytest.approx(math.log(2))
    assert size.log_ratio_aa == 0
    assert peak.head - peak.base > 40_000_000  # bytes


def test_asv_s_setup_setup_cache_and_teardown_are_called_as_asv_does(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each contest, with the cache and the parameters; `setup_cache` once a comparison and side."""
    notes = tmp_path / "notes"
    monkeypatch.setenv("TOY_NOTES", str(notes))
    (tmp_path / "benchmarks" / "prepared.py").write_text(PREPARED)
    monkeypatch.setattr(packages_module, "_CONTESTS", 2)
    monkeypatch.setattr(packages_module, "_DEAR_S", float("inf"))
    packages = make({"name": "a"}, {"name": "b"})
    names = [f"prepared.Prepared.time_prepared({n})" for n in (1, 2)]
    found = dict(packages.contests(names, seed=3))
    assert all(isinstance(reading, Reading) for reading in found.values()), found
    ((_, tracked),) = packages.tracked(["prepared.Prepared.track_prepared(2)"], seed=3)
    assert tracked == Reading(0.0, 0.0, 1000, 1000)
    lines = [line.split(maxsplit=1) for line in notes.read_text().splitlines()]
    of = {name: [what for whose, what in lines if whose == name] for name in ("a", "b")}
    # The first of a comparison finds out on one side how many calls a setup bears.
    few, many = sorted((Counter(of["a"]), Counter(of["b"])), key=Counter.total)
    # Of "b" there is one side, of "a" there are two, which share what the cache holds.
    assert few["setup_cache"] == many["setup_cache"] == 1
    for n in (1, 2):
        assert few[f"setup 500 {n}"] >= 2
    for counts in (few, many):
        for n in (1, 2):
            assert counts[f"setup 500 {n}"] == counts[f"teardown 500 {n}"]
    assert of["b"][0] == "setup_cache"
    work = [what for what in of["b"] if what != "setup_cache"]
    for before, after in zip(work[::2], work[1::2], strict=True):
        assert after == before.replace("setup", "teardown")


@ONCE
def test_sides_import_what_a_benchmark_needs_at_the_same_time(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "benchmarks" / "meeting.py").write_text(MEETING)
    packages = make({}, {})
    packages.listed()
    (tmp_path / "meeting").mkdir()
    monkeypatch.setenv("TOY_MEETING", str(tmp_path / "meeting"))
    ((_, reading),) = packages.contests(["meeting.time_nothing"], seed=1)
    assert isinstance(reading, Reading), reading


def test_what_says_that_it_is_not_to_be_run_is_not_timed(make: Make, tmp_path: Path) -> None:
    (tmp_path / "benchmarks" / "prepared.py").write_text(PREPARED)
    ((_, failure),) = make({}, {}).contests(["prepared.Skipped.time_skipped"], seed=1)
    assert isinstance(failure, Failure)
    assert failure.skipped
    assert "not on this machine" in failure.reason


def test_every_process_loads_copies_of_its_own_and_they_go_with_it(
    make: Make, tmp_path: Path
) -> None:
    packages = make({}, {"passes": 20})
    (packages.suite.folder / "places.py").write_text(
        "import toy, zlib\ndef track_place(): return zlib.crc32(toy.__file__.encode())\n"
    )
    places = []
    for _ in range(2):
        ((_, reading),) = packages.tracked(["places.track_place"], seed=1)
        assert isinstance(reading, Reading)
        places += [reading.base, reading.head]
    assert len({*places}) == 4
    assert not [*tmp_path.rglob("copies-*")]


@ONCE
def test_a_peak_is_the_own_and_not_that_of_the_process_that_started_it(make: Make) -> None:
    held = bytearray(200_000_000)  # zeroed pages that nobody touched are not held
    held[::4096] = b"x" * len(held[::4096])
    ((_, peak),) = make({}, {}).peaks(["toys.peakmem_held"], seed=1)
    assert isinstance(peak, Reading)
    assert peak.base < len(held) / 2


def test_a_value_of_zero_has_no_ratio_but_may_stay_the_same(make: Make) -> None:
    ((_, reading),) = make({"size": 0}, {"size": 0}).tracked(["toys.track_size"], seed=1)
    assert reading == Reading(0.0, 0.0, 0, 0)
    ((_, failure),) = make({"size": 0}, {"size": 1}).tracked(["toys.track_size"], seed=1)
    assert isinstance(failure, Failure)
    assert "numbers over 0" in failure.reason


def test_a_package_from_elsewhere_is_refused(make: Make, tmp_path: Path) -> None:
    packages = make({}, {})
    (tmp_path / "empty").mkdir()
    elsewhere = replace(packages.sides["base"], folder=tmp_path / "empty")
    packages.sides["base"] = elsewhere  # type: ignore[index]
    with pytest.raises(ContestError):
        packages.builds()


def test_modules_that_cannot_have_the_names_are_not_read(make: Make, tmp_path: Path) -> None:
    broken = tmp_path / "benchmarks" / "broken.py"
    broken.write_text("import no_such_module\n\ndef time_it():\n    benchmark_name_of(time_it)\n")
    packages = make({}, {})
    packages.beginning = "toys.time_wor"
    assert "toys.time_work" in packages.names("time")
    assert not packages.listed()["head"].broken
    packages.beginning = ""
    assert "broken" in str(packages.listed()["head"].broken)
    # Where a benchmark may be called anything, any module may have it.
    broken.write_text("def time_it():\n    pass\n\ntime_it.benchmark_name = 'toys.time_worse'\n")
    other = make({}, {})
    other.beginning = "toys.time_wor"
    assert {"toys.time_work", "toys.time_worse"} <= {*other.names("time")}
