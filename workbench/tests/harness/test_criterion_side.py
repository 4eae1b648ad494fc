"""Programs by criterion, one for each side, whose runs alternate: what they are asked, and what is
made of their samples. The programs here are stand-ins, which take criterion's options and leave its
files."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from python_scripts import script

from rlox_opt.harness import side_processes
from rlox_opt.harness.packages import Failure, Packages, Reading
from rlox_opt.harness.restarts import ContestError
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.kinds.criterion import Criterion

PROGRAM = '''
"""{help}"""
import json, os, pathlib, re, sys, time
SPEED = {speed}
time.sleep({setup})
IDS = ["quick", "slow/10", "odd of (3)", "panics", "never iterates", "asks for long"]
asked = dict(zip(sys.argv[1:], sys.argv[2:]))
assert sys.argv[1] == "--bench", "without it criterion only tests"
if "--list" in sys.argv:
    for id_ in IDS:
        print(f"{{id_}}: {listed}\\n")
    sys.exit()
warm_up = sys.argv[sys.argv.index("--warm-up-time") + 1] if "--warm-up-time" in sys.argv else "1"
if {old} and "." in warm_up:  # seconds were whole ones
    print(f"error: Invalid value: The argument '{{warm_up}}' isn't a valid value")
    sys.exit(1)
# As an old regex crate does, it refuses an escape of what has no meaning.
assert not re.search(r"\\\\[ /]", sys.argv[-1]), sys.argv[-1]
(id_,) = [id_ for id_ in IDS if re.search(sys.argv[-1], id_)]
with open({notes!r}, "a") as notes:
    print(json.dumps([id_, *sys.argv[1:-1]]), file=notes)
assert pathlib.Path("data.txt").read_text() == "read where it lies"
if id_ == "panics":
    print("Benchmarking panics", file=sys.stderr)
    sys.exit("thread 'main' panicked at benches/toy.rs:3: no such thing")
if id_ == "asks for long" and "--quick" not in sys.argv:
    time.sleep(60)
if id_ != "never iterates":
    folder = pathlib.Path(os.environ["CRITERION_HOME"], id_.replace("/", "_"), "new")
    folder.mkdir(parents=True)
    iters = [10.0, 20.0, 30.0, 40.0]
    times = [n * 500 * SPEED for n in iters]
    times[1] *= 50  # what disturbed the machine for a moment
    old = [iters, times]
    saved = old if {old} else {{"sampling_mode": "Linear", "iters": iters, "times": times}}
    (folder / "sample.json").write_text(json.dumps(saved))
'''
PATIENT = """
import sys
sys.path.insert(0, {inside!r})
import rlox_opt_criterion_side as side
side._LONG_S = {long_s}
side.main(sys.argv[1])
"""


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at the least: each run is a process, and its samples are known."""
    monkeypatch.setattr(side_processes, "_LEAST_ROUNDS", ((side_processes._LONG_S, 1),))


def side(
    folder: Path,
    speed: float,
    quick: bool = True,
    listed: str = "benchmark",
    old: bool = False,
    setup: float = 0.0,
) -> Side:
    """A side whose benchmarks take 500 ns times `speed`; `old` is of criterion 0.3. Before any of
    them its program takes `setup` seconds."""
    programs, sources = folder / f"programs-{speed}", folder / "sources"
    programs.mkdir(parents=True)
    sources.mkdir(exist_ok=True)
    (sources / "data.txt").write_text("read where it lies")
    told = "Benchmark only until the significance level has been reached" if quick else ""
    notes = str(folder / "notes.txt")
    text = PROGRAM.format(help=told, speed=speed, listed=listed, old=old, setup=setup, notes=notes)
    script(programs / "toy", text)
    bench = {"program": "toy", "name": "toy", "folder": str(sources), "env": {}}
    (programs / "benches.json").write_text(json.dumps([bench]))
    return Side(programs, ())


def packages(base: Side, head: Side, long_s: float = 30.0) -> Packages:
    """The sides, for which a run is long that takes `long_s`: on a busy machine one that does
    nothing may take as long as one that is long by itself takes elsewhere."""
    program = base.folder.with_name("patient_side.py")
    inside = str(Path(side_processes.__file__).with_name("inside"))
    program.write_text(PATIENT.format(inside=inside, long_s=long_s))
    suite = Suite(Path("unused"), program=str(program), fresh=True)
    return Packages({"base": base, "head": head}, suite, 60.0)


def runs(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "notes.txt").read_text().splitlines()]


@pytest.mark.parametrize(("listed", "old"), [("benchmark", False), ("bench", True)])
def test_the_sides_runs_alternate_and_their_median_samples_are_compared(
    tmp_path: Path, listed: str, old: bool
) -> None:
    both = packages(
        side(tmp_path, 1.0, listed=listed, old=old), side(tmp_path, 1.5, listed=listed, old=old)
    )
    ((_, outcome),) = both.contests(["toy::odd of (3)"], 1)
    assert isinstance(outcome, Reading)
    assert outcome.base == pytest.approx(500e-9)
    assert outcome.head == pytest.approx(750e-9)
    assert 2.718281828**outcome.log_ratio == pytest.approx(1.5)


def test_a_benchmark_is_run_alone_and_briefly(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    [*both.contests(["toy::slow/10"], 1)]
    for id_, *options in runs(tmp_path):
        assert id_ == "slow/10"
        assert float(options[options.index("--warm-up-time") + 1]) <= 0.1
        assert float(options[options.index("--measurement-time") + 1]) <= 0.2
        assert "--noplot" in options


def test_for_a_sampler_it_is_called_and_not_timed(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    with both.processes(("base",), random.Random(0)) as asks:
        ask, number = asks["base"]
        both.prepare(ask, "base", "toy::slow/10", number=number)
        ask("call", 2)
    looked_at = [options for _, *options in runs(tmp_path) if "--profile-time" in options]
    assert looked_at == [["--bench", "--profile-time", "1"]] * 2


def test_one_restart_has_one_contest_for_each_run_is_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A contest has as many runs, however long they take.
    for name, value in {
        "side_processes._LONG_S": math.inf,
        "side_processes._LEAST_ROUNDS": (),
        "packages._DEAR_S": math.inf,
        "packages._CONTEST_S": 0.0,
    }.items():
        monkeypatch.setattr(f"rlox_opt.harness.{name}", value)
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    [*both.contests(["toy::quick"], 1)]
    once = len(runs(tmp_path))
    both.suite = Suite(Path("unused"), program=both.suite.program)
    [*both.contests(["toy::quick"], 1)]
    assert len(runs(tmp_path)) - once == 3 * (once - 1)  # one was to find out how it is run


def test_a_group_that_asks_for_long_is_run_quickly_from_then_on(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5), long_s=5.0)
    for seed in (1, 2, 3):
        ((_, outcome),) = both.contests(["toy::asks for long"], seed)
        assert isinstance(outcome, Reading)
    long = [options for _, *options in runs(tmp_path) if "--quick" not in options]
    assert len(long) == 1, "it is found out once"
    assert "--quick" in both.told()["toy::asks for long"]
    assert not any("--sample-size" in of for _, *of in runs(tmp_path) if "--quick" in of), (
        "criterion refuses both together"
    )


def test_what_a_program_does_before_any_benchmark_makes_none_of_them_long(tmp_path: Path) -> None:
    slow = (side(tmp_path, speed, setup=1.0) for speed in (1.0, 1.5))
    both = packages(*slow, long_s=0.9)
    ((_, outcome),) = both.contests(["toy::quick"], 1)
    assert isinstance(outcome, Reading)
    assert not any("--quick" in options for options in runs(tmp_path))


def test_before_criterion_0_4_nothing_is_run_quickly(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0, quick=False), side(tmp_path, 1.5, quick=False))
    [*both.contests(["toy::quick"], 1)]
    assert not any("--quick" in options for options in runs(tmp_path))


def test_a_program_that_fails_loses_its_benchmark_alone_and_says_why(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    outcomes = dict(both.contests(["toy::panics", "toy::never iterates", "toy::quick"], 1))
    panicked, without, good = (
        outcomes[f"toy::{name}"] for name in ("panics", "never iterates", "quick")
    )
    assert isinstance(panicked, Failure)
    assert "panicked at benches/toy.rs:3: no such thing" in panicked.reason
    assert "exit status 1" in panicked.reason
    assert "Benchmarking" not in panicked.reason
    assert not panicked.ended
    assert isinstance(without, Failure)
    assert "leaves no samples" in without.reason
    assert isinstance(good, Reading)


def test_names_are_the_programs_and_criterions(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    names = both.names("time")
    assert set(names) == {
        f"toy::{id_}"
        for id_ in ("quick", "slow/10", "odd of (3)", "panics", "never iterates", "asks for long")
    }
    both.beginning = "other::"
    assert both.names("time") == {}
    both.beginning = "toy::sl"
    assert len(both.names("time")) == 6


def test_a_program_that_does_not_list_is_told_with_its_reason(tmp_path: Path) -> None:
    base = side(tmp_path, 1.0)
    script(base.folder / "toy", "import sys\nsys.exit('no such CPU')\n")
    both = packages(base, side(tmp_path, 1.5))
    listed = both.listed()["base"]
    assert not listed.benchmarks
    assert "no such CPU" in listed.broken["toy"]


def test_where_a_file_is_lacking_it_is_told_how_to_have_it(tmp_path: Path) -> None:
    base = side(tmp_path, 1.0)
    script(base.folder / "toy", "open('data/not-in-git.txt')\n")
    both = packages(base, side(tmp_path, 1.5))
    reason = both.listed()["base"].broken["toy"]
    assert "before-build under [workspace.metadata.rlox-opt] of the project's Cargo.toml" in reason


def test_a_program_has_the_users_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/the/user's")
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    for of in both.sides.values():
        script(of.folder / "toy", "import os\nprint(os.environ['VIRTUAL_ENV'] + ': benchmark')\n")
    top = PurePosixPath()
    asked = Configuration(top / "Cargo.toml", top, top, kind="criterion")
    told = Criterion().laid_out(tmp_path, asked, (), tmp_path).settings
    both.suite = replace(both.suite, settings=told)
    assert [*both.names("time")] == ["toy::/the/user's"]


def test_no_result_is_left_where_a_side_ran(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    [*both.contests(["toy::quick"], 1)]
    assert {path.name for path in (tmp_path / "sources").iterdir()} == {"data.txt"}


def test_an_unknown_benchmark_is_named(tmp_path: Path) -> None:
    both = packages(side(tmp_path, 1.0), side(tmp_path, 1.5))
    with both.alone("base", random.Random(0)) as ask, pytest.raises(ContestError, match="other::x"):
        both.prepare(ask, "base", "other::x")
