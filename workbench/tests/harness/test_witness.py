"""Instructions and allocations of a call: read as callgrind writes them, and counted for real."""

import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import toy_packages

from rlox_opt.harness import callgrind
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.side_processes import Side, Suite

# As callgrind writes it: a name once, then its number; a call is a cfn and a calls line.
DUMP = """\
events: Ir
fn=(1) work
16 400
cfn=(2) malloc
calls=3 0
16 90
cfn=(3) free
calls=3 0
16 60
fn=(4) other
cfn=(2)
calls=2 0
12 50
cob=(1) /lib/libc.so
cfn=(5) calloc'2
calls=1 0
12 20
totals: 12345
"""
VALGRIND = pytest.mark.skipif(not callgrind.available(), reason="valgrind is not installed")
SLOW = "import time\ndef time_slow(): time.sleep(60)\n"  # which valgrind makes no longer
SECONDS = {  # of a call
    "toys.time_steady": 1e-5, "slow.time_slow": 60.0, "toys.time_work": 1e-4,
    "toys.time_raises": 5e-6,
}  # fmt: skip
SHORTEST_FIRST = ["toys.time_raises", "toys.time_steady", "toys.time_work"]


class Counted(NamedTuple):
    """What was told while base and head were counted: the counts by side, in their order, what was
    begun, and what was too late. `left` are the temporary files that are still there."""

    counts: Mapping[str, dict[str, callgrind.Counts]]
    begun: list[str]
    late: list[str]
    left: list[Path]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """Base, and a head that does twice the work and raises in one benchmark; another benchmark
    would take longer than there is time."""
    folder = tmp_path_factory.mktemp("counted")
    temporary = folder / "temporary"
    temporary.mkdir()
    benchmarks = toy_packages.benchmarks(folder)
    (benchmarks / "slow.py").write_text(SLOW)
    folders = {
        "base": toy_packages.package(folder / "base", passes=10),
        "head": toy_packages.package(folder / "head", "raises", passes=20),
    }
    packages = _packages(folders, benchmarks)
    counts: dict[str, dict[str, callgrind.Counts]] = {"base": {}, "head": {}}
    begun: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(temporary))
        late = callgrind.count_all(
            packages,
            [(side, SECONDS) for side in counts],
            lambda side, *told: counts[side].update([told]),
            time.monotonic() + 400,
            begun.append,
        )
    return Counted(counts, begun, late, [*temporary.iterdir()])


def _packages(folders: Mapping[str, Path], benchmarks: Path) -> Packages:
    return Packages(
        {side: Side(folder, ("toy",)) for side, folder in folders.items()}, Suite(benchmarks), 120.0
    )


def test_a_dump_gives_instructions_and_calls_of_the_allocators(tmp_path: Path) -> None:
    path = tmp_path / "out.1"
    path.write_text(DUMP)
    assert callgrind._read(path) == (12345, 3 + 2 + 1)


@VALGRIND
def test_twice_the_work_takes_twice_the_instructions(counted: Counted) -> None:
    base, head = counted.counts.values()
    work = [side["toys.time_work"]["instructions"] for side in (base, head)]
    steady = [side["toys.time_steady"]["instructions"] for side in (base, head)]
    assert work[1] / work[0] == pytest.approx(2, abs=0.1)
    assert steady[1] == pytest.approx(steady[0], rel=0.01)
    assert work[0] > 10 * 2_000  # ten sums of 2 000 numbers
    assert base.keys() == {*SHORTEST_FIRST}


def test_what_is_not_begun_in_time_is_left_out(tmp_path: Path) -> None:
    packages = _packages({"base": tmp_path}, tmp_path)  # nothing that could be counted
    late = time.monotonic() - 1
    told: list[object] = []
    callgrind.count_all(
        packages, [("base", {"toys.time_work": 1e-4})], lambda *of: told.append(of), late
    )
    assert not told


def _slow(folder: Path) -> Packages:
    """A package with a benchmark that sleeps."""
    benchmarks = toy_packages.benchmarks(folder)
    (benchmarks / "slow.py").write_text(SLOW)
    return _packages({"base": toy_packages.package(folder)}, benchmarks)


@VALGRIND
def test_the_shortest_are_counted_first_and_what_would_take_too_long_is_not_begun(
    counted: Counted,
) -> None:
    assert [*counted.counts["base"]] == SHORTEST_FIRST
    assert Counter(counted.begun) == dict.fromkeys(SHORTEST_FIRST, 2)  # once on each side
    assert counted.late == ["slow.time_slow"]


@VALGRIND
def test_a_count_that_takes_longer_than_it_seemed_ends_with_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callgrind, "_GRACE_S", 0.1)  # nothing answers after the time
    packages, told = _slow(tmp_path), list[object]()
    packages.listed()
    seconds = {"slow.time_slow": 1e-5, "toys.time_work": 1e-4}
    start = time.monotonic()
    late = callgrind.count_all(
        packages, [("base", seconds)], lambda *of: told.append(of), start + 2
    )
    assert time.monotonic() - start < 30  # one call takes 60
    assert late == ["slow.time_slow", "toys.time_work"]
    assert not told


@VALGRIND
def test_an_interruption_ends_a_count_at_once_and_leaves_nothing_running(tmp_path: Path) -> None:
    packages = _slow(tmp_path)
    main = threading.get_ident()
    start = time.monotonic()

    def begins(name: str) -> None:
        threading.Timer(1, signal.pthread_kill, (main, signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        callgrind.count_all(
            packages, [("base", {"slow.time_slow": 1e-5})], lambda *_: None, begins=begins
        )
    assert time.monotonic() - start < 30  # one call takes 60
    assert not [of for of in Path("/proc").glob("[0-9]*/cmdline") if f"{tmp_path}" in _text(of)]


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        return path.read_text()
    return ""


@VALGRIND
def test_after_an_interruption_nothing_more_is_counted(tmp_path: Path) -> None:
    benchmarks = toy_packages.benchmarks(tmp_path)
    sides = {side: toy_packages.package(tmp_path / side) for side in ("base", "head")}
    packages = _packages(sides, benchmarks)
    seconds = {f"toys.Sized.time_sized({n})": 1e-5 for n in (1, 2)} | {"toys.time_steady": 1e-5}
    told: list[str] = []

    def hear(side: str, name: str, counts: callgrind.Counts) -> None:
        told.append(name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        callgrind.count_all(packages, [(side, seconds) for side in sides], hear)
    assert 1 <= len(told) <= 2  # once a side at the most: nothing went on after it


@VALGRIND
def test_what_fails_is_left_out_the_rest_is_counted_and_no_pipe_is_left(counted: Counted) -> None:
    assert counted.counts["head"].keys() == {"toys.time_steady", "toys.time_work"}
    assert not counted.left
