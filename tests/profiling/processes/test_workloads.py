"""The report of several processes against programs of known composition.

The truth is each part's CPU time by the program's own clock, and the time of a turn when a part is
really made faster. Turns as they are and faster take turns, so that what the machine's neighbours
do falls on both. The tables go to the terminal and to the folder named by RLOX_ACCURACY, if set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from rlox.profiling.machine import commit, machine, versions
from rlox.profiling.processes.analysis import analyse
from rlox.profiling.processes.launch import Options, launch
from rlox.profiling.processes.run import Run, read_run
from rlox.profiling.processes.tracks import tracks

SCRIPT = Path(__file__).with_name("workloads.py")
POINTS = 2.0  # a component's share of all work may be off by
PREDICTED = 0.10  # a predicted speed-up may be off by
ATTEMPTS = 3


class Quiet:
    """Nobody is told."""

    def plan(self, steps: Sequence[tuple[str, float]]) -> None: ...

    def begin(self, title: str) -> None: ...

    def note(self, text: str, fraction: float | None = None) -> None: ...

    def end(self, text: str) -> None: ...


@dataclass(frozen=True)
class Question:
    """What is made faster (`PART=FACTOR`), and which gain of the report says what that is worth."""

    faster: str
    what: str
    field: str


# What the parts of a turn are called in the report, and their milliseconds of CPU.
TRUTH = {
    "ranks": {"rank: gradient": 12.0, "rank: store": 2.0},
    "workers": {"worker: step": 7.0, "main: learn": 3.0},
    "lock": {"main: worker-*: outside": 1.5, "main: worker-*: inside": 4.0},
    "gil": {"main: learn": 3.0, "main: logger: log": 4.0},
}
QUESTIONS = {
    "ranks": [Question("gradient 1=0.5", "rank 1 alone: gradient", "evened")],
    "workers": [
        Question("step 2=0.25", "worker 2 alone: step", "evened"),
        Question("learn=0.5", "main: learn", "twice"),
    ],
    "lock": [Question("inside=0.5", "while it is held", "twice")],
    "gil": [Question("log=0.5", "main: logger: log", "twice")],
}


def command(name: str, seconds: float, *factors: str) -> list[str]:
    return [sys.executable, str(SCRIPT), name, str(seconds), *factors]


def alone(name: str, seconds: float, *factors: str) -> float:
    """Seconds of a turn, with nobody looking on."""
    done = subprocess.run(command(name, seconds, *factors), stdout=subprocess.PIPE, check=True)
    turn: float = json.loads(done.stdout)["turn_s"]
    return turn


def recorded(name: str, seconds: float, folder: Path) -> dict[str, Any]:
    """The report on the program."""
    out = folder / "output.txt"
    with out.open("w") as file:
        outcome = launch(command(name, seconds), folder / "run", Options(), None, Quiet(), file)
    assert outcome.status == 0
    run = read_run(folder / "run")
    found = analyse(run, *steady(run))
    assert found is not None
    return found


def steady(run: Run) -> tuple[int, int]:
    """From when all threads worked, until one stopped."""
    working = [track.blocks for track in tracks(run) if track.blocks]
    first = max(min(block.begin_ns for block in blocks) for blocks in working)
    return first, min(max(block.end_ns for block in blocks) for blocks in working)


def gain(found: dict[str, Any], question: Question) -> float:
    value: float = next(
        row[question.field] for row in found["gains"] if row["what"].endswith(question.what)
    )
    return value


def shares(name: str, found: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Truth and report: the share of each component's phase in all known work."""
    truth = TRUTH[name]
    told = {what: found["work"].get(what, 0.0) for what in truth}
    return {
        what: (truth[what] / sum(truth.values()), told[what] / sum(told.values())) for what in truth
    }


def test_a_lock_that_threads_want_is_named_with_who_had_it(tmp_path: Path) -> None:
    found = recorded("lock", 1.5, tmp_path)
    named = [wait for row in found["kinds"] for wait in row["waits"] if wait["on"] == "lock"]
    assert named[0]["what"] == f"lock: {SCRIPT.name}:{line_of('shared = threading.Lock()')}"
    assert named[0]["whom"].startswith("main: worker-")
    assert any(row["kind"] == "lock" for row in found["gains"])


def line_of(text: str) -> int:
    lines = SCRIPT.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_watch_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    from rlox.profiling.processes.watch import Watch
    from rlox.profiling.processes.watcher import STATES, WATCH

    looks = [{"look": [at, [[7, 8, at // 2, 0, at % 2]]]} for at in range(0, 1000, 100)]
    text = "".join(json.dumps(look) + "\n" for look in looks)
    (tmp_path / f"{WATCH}.0.jsonl").write_text(text[:-9])
    seen = Watch.load(tmp_path).of(7, 8)
    assert seen is not None
    assert len(seen.at) == 9
    assert seen.spent(seen.ran, 0, 800) == pytest.approx(400e-9)
    assert seen.spent(seen.ran, 0, 1600) == pytest.approx(800e-9)
    assert seen.states([(100, 301)], 0, 700)[STATES[0]] == 5
    assert Watch.load(tmp_path).of(7, 9) is None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TRUTH)
def test_the_report_is_near_the_truth(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for attempt in range(ATTEMPTS):
        table, near = measure(name, tmp_path / str(attempt))
        with capsys.disabled():
            print(f"\n{table}")
        if near:
            break
    if os.environ.get("RLOX_ACCURACY"):
        Path(os.environ["RLOX_ACCURACY"], f"processes-{name}.md").write_text(table)
    assert near, table


def measure(name: str, folder: Path, seconds: float = 6.0) -> tuple[str, bool]:
    """The workload's table, and whether all of it is as near as it should be."""
    folder.mkdir()
    found = recorded(name, seconds, folder)
    rows = ["| part | truth | report |", "|---|---:|---:|"]
    near = True
    for what, (truth, told) in shares(name, found).items():
        rows.append(f"| {what}, share of the work | {truth:.1%} | {told:.1%} |")
        near &= abs(truth - told) * 100 <= POINTS
    for question in QUESTIONS[name]:
        predicted = gain(found, question)
        turns = [
            (alone(name, seconds / 2), alone(name, seconds / 2, question.faster)) for _ in range(3)
        ]
        measured = median(before / after for before, after in turns)
        rows.append(f"| {question.faster}: times as fast | {measured:.3f} | {predicted:.3f} |")
        near &= abs(predicted / measured - 1) <= PREDICTED
    took = found["replayed"]
    rows.append(
        f"| seconds, recorded and replayed | {took['recorded_s']:.2f} | {took['replayed_s']:.2f} |"
    )
    waits = [f"{w['whom']} ({w['what']})" for row in found["kinds"] for w in row["waits"][:1]]
    return (
        f"### Workload `{name}`\n\n" + "\n".join(rows) + f"\n\nWaited for most: {'; '.join(waits)}."
        f"\n\n{provenance()}\n"
    ), near


def provenance() -> str:
    """Where and when, as a record must say."""
    where, (head, dirty), what = machine(), commit(), versions()
    return (
        f"Commit {(head or 'unknown')[:12]}{' and changes' if dirty else ''}, {where['cpu']} "
        f"({where['cores']} cores), {where['kernel']}, Python {what['python']}."
    )
