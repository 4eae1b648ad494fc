"""The ranking of layers against workloads of known composition (slow).

The truth of a mixture is how often each component is called times what it costs alone: calls timed
one by one, between visits of the mixture, by the thread's CPU clock. The report is what a user
gets: the self time of each phase while no tool looks on, and within each phase the layers that the
tool saw. Undisturbed time and the tools take turns on one process, so that what the machine's
neighbours do falls on all of them.

The tables go to the terminal and to the folder named by RLOX_ACCURACY, if set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import fmean
from types import ModuleType

import projects
import pytest
from mixture import MIXTURES
from projects import CLASSIFIER
from rlox_opt.sampling import perf, pyspy
from rlox_opt.sampling.attribution import LayerShare, attribute
from rlox_opt.sampling.layers import LAYERS
from rlox_opt.sampling.samples import MAIN_THREAD, Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.sampling.windows import longest
from rlox_opt.system.machine import commit, machine

TURNS = 12
PLAIN_S = 3.0  # a turn
MIN_SAMPLES = 5_000
ATTEMPTS = 3
DISTURBED = 0.02  # share of its time that a process waits for a CPU, above which it says little


@dataclass
class Tool:
    """A sampler, its rate, its turns and their seconds, and the largest error in points."""

    module: ModuleType
    rate: int
    turns: int
    seconds: float
    tolerance: float
    samples: Samples = field(init=False)
    read_s: float = 0.0
    slowdown: float = 1.0

    def count(self) -> int:
        return sum(sample.thread == MAIN_THREAD for sample in self.samples.samples)


# As long as each would look on at a training whose layers it ranks. py-spy has to settle, which the
# mixture's first seconds are for: one long turn, and the first.
TOOLS = {
    "py-spy": Tool(pyspy, pyspy.RATE, 1, longest("py-spy", None), 3.0),
    "perf": Tool(perf, perf.RATE, TURNS, longest("perf", None) / TURNS, 1.0),
}

# Activations must not go back to the system between calls, or a component of torch is full of
# page faults, which are the kernel's.
_ENV = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@contextmanager
def running(name: str, folder: Path) -> Iterator[int]:
    """The mixture in a process of its own, warmed up; at the end it writes what it measured."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("mixture.py")), name, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | _ENV,
    )
    try:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
        child.stdin.close()
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.wait()


Windows = list[tuple[int, int]]


@contextmanager
def noted(windows: Windows) -> Iterator[None]:
    """Adds the time that the block takes."""
    start = time.perf_counter_ns()
    yield
    windows.append((start, time.perf_counter_ns()))


def truth_of(name: str, folder: Path, windows: Windows) -> dict[str, float]:
    """Share of each layer: calls times the mean cost of a call alone, in the plain windows."""
    costs: dict[str, list[int]] = defaultdict(list)
    for when, layer, cost in json.loads((folder / "costs.json").read_text()):
        if any(start < when < end for start, end in windows):
            costs[layer].append(cost)
    spent = dict.fromkeys(LAYERS, 0.0)
    for content in MIXTURES[name].values():
        for layer, calls in content.items():
            spent[layer] += calls * fmean(costs[layer])
    return {layer: value / sum(spent.values()) for layer, value in spent.items()}


def self_seconds_of(log: SpanLog, windows: Windows) -> dict[str, float]:
    """Mean self time of a visit of each phase."""
    visits: dict[str, list[float]] = defaultdict(list)
    inner: dict[str, int] = defaultdict(int)
    for span in log:  # inner spans close before the span around them
        spent = span.end_ns - span.start_ns
        own = spent - inner.pop(span.path, 0)
        inner[span.path.rpartition("/")[0]] += spent
        if any(start < span.start_ns and span.end_ns < end for start, end in windows):
            visits[span.path].append(own * 1e-9)
    return {path: fmean(times) for path, times in visits.items()}


def pace(log: SpanLog, windows: Windows) -> float:
    """Seconds that a visit of the mixture takes, with what lies between two visits."""
    ends = [span.end_ns for span in log if span.path == "gradient_update"]
    visits = sum(any(start < end_ns < end for start, end in windows) for end_ns in ends)
    return sum(end - start for start, end in windows) * 1e-9 / visits


def waiting_share(pid: int) -> tuple[int, int]:
    """Nanoseconds that the process ran, and that it was kept waiting for a CPU."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(ran), int(waited)


def measure(
    name: str, folder: Path, tools: dict[str, Tool]
) -> tuple[dict[str, float], dict[str, dict[str, LayerShare]], float]:
    """The truth, what each tool reports, and the share of its time that the process was kept."""
    windows: dict[str, Windows] = defaultdict(list)
    turns: dict[str, list[Path]] = defaultdict(list)
    folder.mkdir(exist_ok=True)
    with running(name, folder) as pid:
        for turn in range(TURNS):
            for label, tool in tools.items():
                if turn % (TURNS // tool.turns):
                    continue
                turns[label].append(folder / f"{label}{turn}")
                turns[label][-1].mkdir()
                settle_s = tool.module.SETTLE_S
                seconds = settle_s + tool.seconds
                sampler = tool.module.attach(pid, seconds, turns[label][-1], tool.rate)
                time.sleep(settle_s)
                with noted(windows[label]):
                    assert sampler.wait(tool.seconds + 60) == 0
            with noted(windows["plain"]):
                time.sleep(PLAIN_S)
        ran, kept = waiting_share(pid)
    spans = SpanLog.load(folder / "spans")
    self_seconds = self_seconds_of(spans, windows["plain"])
    reports = {}
    for label, tool in tools.items():
        start_s = time.monotonic()
        read = [tool.module.load(turn, CLASSIFIER, spans).samples for turn in turns[label]]
        tool.read_s = time.monotonic() - start_s
        tool.samples = Samples(label, [sample for turn in read for sample in turn])
        tool.slowdown = pace(spans, windows[label]) / pace(spans, windows["plain"])
        if label == "py-spy":
            tool.samples = pyspy.without_stops(tool.samples, tool.slowdown)
        reports[label] = {s.name: s for s in attribute(tool.samples, self_seconds)}
    return truth_of(name, folder, windows["plain"]), reports, kept / (ran + kept)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", MIXTURES)
def test_reported_layers_are_near_the_truth(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = {label: tool for label, tool in TOOLS.items() if tool.module.unavailable() is None}
    if not tools:
        pytest.skip("neither perf nor py-spy can sample here")
    for attempt in range(ATTEMPTS):
        truth, reports, kept = measure(name, tmp_path / str(attempt), tools)
        worst = {
            label: max(abs(shares[layer].share - truth[layer]) * 100 for layer in LAYERS)
            for label, shares in reports.items()
        }
        table = markdown(name, truth, reports) + "; ".join(
            f"{label}: {tool.count()} samples read in {tool.read_s:.1f} s, "
            f"{tool.slowdown:.2f} times slower, worst {worst[label]:.2f} points"
            for label, tool in tools.items()
        )
        table += f"; kept waiting for a CPU {kept:.1%} of its time\n\n{provenance()}\n"
        with capsys.disabled():
            print(f"\n{table}")
        near = all(worst[label] <= tool.tolerance for label, tool in tools.items())
        held_up = any(tool.slowdown > pyspy.HELD_UP for tool in tools.values())
        if near or not (held_up or kept > DISTURBED):  # a miss on a busy machine says nothing yet
            break
    if os.environ.get("RLOX_ACCURACY"):
        Path(os.environ["RLOX_ACCURACY"], f"{name}.md").write_text(table)
    assert near, table
    assert all(tool.count() >= MIN_SAMPLES for tool in tools.values()), table


def provenance() -> str:
    """Where and when, as a record must say."""
    where, (head, dirty), what = (
        machine(),
        commit(projects.ROOT),
        projects.HERE.installed.versions(),
    )
    return (
        f"{date.today()}, commit {(head or 'unknown')[:12]}{' and changes' if dirty else ''}, "
        f"{where['cpu']} ({where['cores']} cores), {where['kernel']}, Python {what['python']}, "
        f"torch {what['torch']}, py-spy {what['py-spy']}, perf {what['perf']}"
    )


def markdown(
    name: str,
    truth: dict[str, float],
    reports: dict[str, dict[str, LayerShare]],
) -> str:
    """Truth against reported, in per cent, with the difference in points."""
    head = ["layer", "truth %", *(f"{label} % (points)" for label in reports)]
    rows = [head, ["---"] * len(head)]
    for layer in LAYERS:
        cells = [
            f"{100 * shares[layer].share:.2f} ({100 * (shares[layer].share - truth[layer]):+.2f})"
            for shares in reports.values()
        ]
        rows.append([layer, f"{100 * truth[layer]:.2f}", *cells])
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"### Mixture `{name}`\n\n{lines}\n\n"
