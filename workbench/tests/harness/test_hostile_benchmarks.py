"""Hostile benchmarks, and modules that cannot be read: what they do is their own loss."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rlox_opt.harness import side_processes
from rlox_opt.harness.packages import Failure, Packages, Reading
from rlox_opt.harness.restarts import ContestError

HOSTILE = """
import os, sys, time, warnings
import toy

def time_prints():
    print("{}", flush=True)
    os.write(1, b"[1, 2\\n")
    sys.stderr.write("x" * 1000)

def time_reads():
    assert sys.stdin.read() == ""

def time_exits():
    sys.exit("bye")

def time_ends():
    os._exit(7)

def time_closes():
    os.closerange(0, 3)
    sum(range(1000))

def time_closes_all():
    os.closerange(3, 64)

def time_forks():
    if os.fork() == 0:
        time.sleep(0.01)  # and comes back, as if it were the one that was asked
    else:
        os.wait()

def time_leaves_a_child():
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    os._exit(1)

def time_hangs():
    time.sleep(100)
time_hangs.timeout = 0.25

def track_text():
    return "much"

def track_nan():
    return float("nan")

def time_fine():
    sum(range(1000))
"""
FINE = """
def time_fine():
    sum(range(1000))
"""
EMPTY = "raise RuntimeError('this module\\ncannot be imported')"


def test_a_hostile_benchmark_loses_its_own_result_and_no_other(
    made: Callable[..., Packages],
) -> None:
    packages = made(hostile=HOSTILE, empty=EMPTY, limit_s=20.0)
    listed = packages.listed()
    for side in listed.values():
        assert side.broken == {"benchmarks.empty": "RuntimeError: this module cannot be imported"}
    names = [*packages.names("time")]
    found = dict(packages.contests(names, 5))
    failed = {n.partition("_")[2]: of.reason for n, of in found.items() if isinstance(of, Failure)}
    said = {
        "exits": "it calls sys.exit('bye')",
        "ends": "the process ended (exit status 7)",
        "closes_all": "the process",
        "leaves_a_child": "the process ended (exit status 1)",
        "hangs": "did not answer within 2 s",
    }
    assert failed.keys() == said.keys(), failed
    for name, reason in said.items():
        assert failed[name].startswith(reason)
    assert {n.partition("_")[2] for n, of in found.items() if isinstance(of, Reading)} == {
        "prints", "reads", "closes", "forks", "fine",
    }  # fmt: skip
    tracked = dict(packages.tracked([*packages.names("track")], 5))
    assert all(isinstance(of, Failure) for of in tracked.values())


def test_a_module_that_hangs_is_told_with_the_way_round_it(made: Callable[..., Packages]) -> None:
    packages = made(hangs="import time\ntime.sleep(100)\n", fine=FINE, limit_s=5.0)
    packages.limit_s = 0.5
    with pytest.raises(ContestError, match=r"0 s as it read the suite; --bench '\^MODULE' has it"):
        packages.listed()
    packages.beginning, packages.limit_s = "fine.", 20.0
    assert [*packages.names("time")] == ["fine.time_fine"]


ENDS_BADLY = """
class Bad:
    def setup(self): pass
    def time_a(self): sum(range(1000))
    def teardown(self): raise OSError("still open")

def time_b(): sum(range(1000))
def time_c(): sum(range(1000))
"""


def test_who_fails_at_the_end_fails_alone(made: Callable[..., Packages]) -> None:
    packages = made(ends=ENDS_BADLY)
    found = dict(packages.contests([*packages.names("time")], 1))
    failed = {name: of.reason for name, of in found.items() if isinstance(of, Failure)}
    assert list(failed) == ["ends.Bad.time_a"]
    assert "still open" in failed["ends.Bad.time_a"]


COARSE = """
import os, time

def time_coarse(): pass
time_coarse.timer = lambda: 1.0

def time_long():
    with open(os.environ["TOY_NOTES"], "a") as file:
        print("called", file=file)
    time.sleep(0.1)
"""


def test_a_timer_that_tells_no_time_fails_alone(
    made: Callable[..., Packages], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_NOTES", str(tmp_path / "notes"))
    # Calls of a tenth of a second then have as few rounds as those of half a second otherwise.
    monkeypatch.setattr(side_processes, "_LONG_S", 0.05)
    monkeypatch.setattr(side_processes, "_LEAST_ROUNDS", ((0.05, 5), (1.0, 2)))
    packages = made(coarse=COARSE, fine=FINE)
    found = dict(packages.contests([*packages.names("time")], 1))
    calls = len((tmp_path / "notes").read_text().splitlines())
    assert calls <= 3 + 1 + 2 * 3  # each side's first; of a slice; of two rounds at the most
    failed = {name: of for name, of in found.items() if isinstance(of, Failure)}
    assert list(failed) == ["coarse.time_coarse"]
    assert failed["coarse.time_coarse"].reason.startswith("its timer tells no time of a call")


CHILDREN = """
import subprocess, sys
BUSY = "import time\\nwhile time.process_time() < 0.12: pass"

def time_children():
    two = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    for one in two:
        one.wait()
"""


@pytest.mark.parametrize("made", ["a process each"], indirect=True)  # it asks one side alone
def test_child_processes_keep_cores_busy_too(made: Callable[..., Packages]) -> None:
    """Or a benchmark that has several would be held on one core."""
    packages = made(children=CHILDREN)
    with packages.alone("base", random.Random(0)) as ask:
        packages.prepare(ask, "base", "children.time_children")
        _, _, busy = ask("time", 0, 1, 0)
    assert busy > 0.2
