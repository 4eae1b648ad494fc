"""The ranking of layers against workloads of known composition (slow).

The truth of a mixture is how often each component is called times what it costs alone: calls timed
one by one, between visits of the mixture, by the thread's CPU clock. The report is what a user
gets: the self time of each phase while no tool looks on, and within each phase the layers that the
tool saw. Undisturbed time and the tools take turns on one process, so that what the machine's
neighbours do falls on all of them; medians, since neighbours only ever add to a time.

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest
from mixture import MIXTURES

from rlox.profiling import perf, pyspy
from rlox.profiling.attribution import LayerShare, attribute
from rlox.profiling.layers import LAYERS
from rlox.profiling.samples import MAIN_THREAD, Samples
from rlox.timing import SpanLog

TURNS = 4
PLAIN_S = 4.0  # a turn
MIN_SAMPLES = 5_000
ATTEMPTS = 3
DISTURBED = 0.02  # share of its time that a process waits for a CPU, above which it says little


@dataclass
class Tool:
    """A sampler, its seconds a turn, and the largest error in points that a layer may have."""

    module: ModuleType
    seconds: float
    tolerance: float
    samples: Samples = field(init=False)
    read_s: float = 0.0

    def count(self) -> int:
        return sum(sample.thread == MAIN_THREAD for sample in self.samples.samples)


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
    # Where it is allowed, neighbours get the CPU after the mixture, and disturb it less.
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, child.pid, -15)
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


def truth_of(name: str, folder: Path, windows: Windows) -> dict[str, float]:
    """Share of each layer: calls times the median cost of a call alone, in the plain windows."""
    costs: dict[str, list[int]] = defaultdict(list)
    for when, layer, cost in json.loads((folder / "costs.json").read_text()):
        if any(start < when < end for start, end in windows):
            costs[layer].append(cost)
    spent = dict.fromkeys(LAYERS, 0.0)
    for content in MIXTURES[name].values():
        for layer, calls in content.items():
            spent[layer] += calls * median(costs[layer])
    return {layer: value / sum(spent.values()) for layer, value in spent.items()}


def typical_self_seconds(log: SpanLog, windows: Windows) -> dict[str, float]:
    """Median self time of a visit of each phase: visits do equal work, interruptions do not."""
    visits: dict[str, list[float]] = defaultdict(list)
    inner: dict[str, int] = defaultdict(int)
    for span in log:  # inner spans close before the span around them
        spent = span.end_ns - span.start_ns
        own = spent - inner.pop(span.path, 0)
        inner[span.path.rpartition("/")[0]] += spent
        if any(start < span.start_ns and span.end_ns < end for start, end in windows):
            visits[span.path].append(own * 1e-9)
    return {path: median(times) for path, times in visits.items()}


def waiting_share(pid: int) -> tuple[int, int]:
    """Nanoseconds that the process ran, and that it was kept waiting for a CPU."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(ran), int(waited)


def measure(
    name: str, folder: Path, tools: dict[str, Tool]
) -> tuple[dict[str, float], dict[str, dict[str, LayerShare]], float]:
    """The truth, what each tool reports, and the share of its time that the process was kept."""
    windows: Windows = []
    with running(name, folder) as pid:
        for turn in range(TURNS):
            start = time.perf_counter_ns()
            time.sleep(PLAIN_S)
            windows.append((start, time.perf_counter_ns()))
            for label, tool in tools.items():
                (folder / f"{label}{turn}").mkdir(parents=True)
                sampler = tool.module.attach(pid, tool.seconds, folder / f"{label}{turn}")
                assert sampler.wait(tool.seconds + 60) == 0
        ran, kept = waiting_share(pid)
    spans = SpanLog.load(folder / "spans")
    self_seconds = typical_self_seconds(spans, windows)
    reports = {}
    for label, tool in tools.items():
        start_s = time.monotonic()
        turns = [tool.module.load(folder / f"{label}{turn}", spans) for turn in range(TURNS)]
        tool.read_s = time.monotonic() - start_s
        tool.samples = Samples(label, [s for t in turns for s in t.samples], turns[0].period_s)
        reports[label] = {s.name: s for s in attribute(tool.samples, self_seconds)}
    return truth_of(name, folder, windows), reports, kept / (ran + kept)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", MIXTURES)
def test_reported_layers_are_near_the_truth(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = {
        label: tool
        for label, tool in {"perf": Tool(perf, 4, 1.0), "py-spy": Tool(pyspy, 14, 3.0)}.items()
        if tool.module.unavailable() is None
    }
    if not tools:
        pytest.skip("neither perf nor py-spy can sample here")
    for attempt in range(ATTEMPTS):
        truth, reports, kept = measure(name, tmp_path / str(attempt), tools)
        worst = {
            label: max(abs(shares[layer].share - truth[layer]) * 100 for layer in LAYERS)
            for label, shares in reports.items()
        }
        table = markdown(name, truth, reports) + "; ".join(
            f"{label}: {tool.count()} samples, read in {tool.read_s:.1f} s, "
            f"worst {worst[label]:.2f} points"
            for label, tool in tools.items()
        )
        table += f"; kept waiting for a CPU {kept:.1%} of its time\n"
        with capsys.disabled():
            print(f"\n{table}")
        near = all(worst[label] <= tool.tolerance for label, tool in tools.items())
        if near or kept < DISTURBED:  # a miss on a busy machine says nothing yet
            break
    if os.environ.get("RLOX_ACCURACY"):
        Path(os.environ["RLOX_ACCURACY"], f"{name}.md").write_text(table)
    assert near, table
    assert all(tool.count() >= MIN_SAMPLES for tool in tools.values()), table


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
