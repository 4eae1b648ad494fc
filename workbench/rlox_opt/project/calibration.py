"""What can be measured on a machine, from its A/A restarts: error rates of the verdicts by
resampling, the smallest change that is found, and what about the machine could be improved."""

from __future__ import annotations

import json
import math
import os
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rlox_opt.harness.sequential import GUESS_S
from rlox_opt.project.project import Project
from rlox_opt.stats.family import judge, restarts_to_settle
from rlox_opt.stats.paired import FLAGGED, LOOKS
from rlox_opt.stats.student import deviation
from rlox_opt.system.files import check_folder, write_new
from rlox_opt.system.machine import commit, machine, slug
from rlox_opt.system.schema import NotNegative, Positive, read

_DRAWS = 300
_POWER = 0.95
_THRESHOLDS = (1.0, 3.0)  # per cent: the default, and that of the hook and the workflow
_LOAD = 0.25  # cores: other programs that use more are mentioned


def rates(log_ratios: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """From the A/A log-ratios of each benchmark, two at the least: `{run_alarms, cell_alarms,
    thresholds: {percent: {run_alarms, cell_alarms}}, benchmarks: {name: {sd, bias, alarms,
    detectable}}}`.
    Alarms are shares of the runs or of the verdicts, outside `thresholds` at the default threshold;
    `detectable` is a ratio.

    A run of `diff` is simulated by drawing restarts with replacement, `_DRAWS` times.
    """
    rng = random.Random(0)
    drawn = [
        {name: rng.choices(of, k=LOOKS[-1]) for name, of in log_ratios.items()}
        for _ in range(_DRAWS)
    ]
    flagged = {
        percent: [_flagged(run, math.log1p(percent / 100)) for run in drawn]
        for percent in _THRESHOLDS
    }
    thresholds = {
        f"{percent:g}": _alarms(runs, len(log_ratios)) for percent, runs in flagged.items()
    }
    alarms = Counter(name for run in flagged[_THRESHOLDS[0]] for name in run)
    return {
        **thresholds[f"{_THRESHOLDS[0]:g}"],
        "thresholds": thresholds,
        "benchmarks": {
            name: {
                "sd": deviation(of),
                "bias": statistics.fmean(of),
                "alarms": alarms[name] / _DRAWS,
                "detectable": detectable(of, rng),
            }
            for name, of in log_ratios.items()
        },
    }


def _alarms(runs: Sequence[Sequence[str]], benchmarks: int) -> dict[str, float]:
    return {
        "run_alarms": sum(map(bool, runs)) / len(runs),
        "cell_alarms": sum(map(len, runs)) / len(runs) / benchmarks,
    }


def _flagged(drawn: Mapping[str, Sequence[float]], band: float) -> list[str]:
    """The benchmarks that a simulated run of `diff` flags."""
    settled: dict[str, Any] = {}
    for look in LOOKS:
        judgements = judge({name: of[:look] for name, of in drawn.items()}, band, settled)
        settled = {name: j for name, j in judgements.items() if j.verdict != "undecided"}
    return [name for name, j in settled.items() if j.verdict in FLAGGED]


def detectable(log_ratios: Sequence[float], rng: random.Random) -> float:
    """The smallest ratio over 1 that a run of `diff` of this benchmark alone distinguishes from 1
    with a power of 95 %. A change that exceeds a threshold by this factor is called slower at that
    threshold. Among many benchmarks the power is less, since a difference must stand out among
    them. A bias may have either sign in a comparison, so it counts against the change."""
    low, high = 0.0, 1.0
    mean = statistics.fmean(log_ratios)
    against = [ratio - mean - abs(mean) for ratio in log_ratios]
    drawn = [rng.choices(against, k=LOOKS[-1]) for _ in range(_DRAWS)]
    for _ in range(12):
        middle = (low + high) / 2
        seen = sum(_found([ratio + middle for ratio in run]) for run in drawn)
        low, high = (low, middle) if seen >= _POWER * _DRAWS else (middle, high)
    return math.exp(high)


def _found(log_ratios: Sequence[float]) -> bool:
    for look in LOOKS:
        verdict = judge({"": log_ratios[:look]}, band=0.0)[""].verdict
        if verdict != "undecided":
            return verdict == "slower"
    return False


@dataclass
class Detectable:
    """One benchmark's scatter of log-ratios, and the smallest ratio that is found."""

    sd: NotNegative
    detectable: Positive


@dataclass
class Calibration:
    """The parts of a calibration's record that are read."""

    date: str
    seconds_per_restart: Positive
    benchmarks: dict[str, Detectable]


def check_records(records: Path) -> None:
    """Check that `keep` can write. Raises NotWrittenError."""
    check_folder(records / slug(machine()))


def keep(project: Project, kind: str, **facts: Any) -> tuple[Path, dict[str, Any]]:
    """Write facts that were found on this machine, now, as a new record of a project. Returns the
    file and its contents. Without a `commit` among the facts, the record names the checkout's."""
    date = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    origin = dict(zip(("commit", "dirty"), commit(project.top), strict=True))
    record = {"schema": 1, "date": date, "machine": machine(), **origin, **facts}
    folder = project.records / slug(record["machine"])
    text = json.dumps(record, indent=1) + "\n"
    return write_new(text, folder, f"{date.replace(':', '')}_{kind}"), record


def newest(records: Path, of: str | None = None) -> dict[str, Any] | None:
    """The newest calibration of a machine, named by its folder; without a name, this machine's.
    Raises NotReadError."""
    path = _newest(records / (of or slug(machine())))
    return read(path, dict[str, Any]) if path and read(path, Calibration) else None


def _newest(folder: Path) -> Path | None:
    return max(folder.glob("*_calibration*.json"), default=None)


def smallest(records: Path) -> dict[str, dict[str, float]]:
    """By machine and benchmark, the smallest log-ratio that can be found on the machine. Raises
    NotReadError."""
    by_machine: dict[str, dict[str, float]] = {}
    for of in sorted({path.parent.name for path in records.glob("*/*_calibration*.json")}):
        if path := _newest(records / of):
            rows = read(path, Calibration).benchmarks.items()
            by_machine[of] = {name: math.log(row.detectable) for name, row in rows}
    return by_machine


def plan(records: Path, bands: Mapping[str, float], budget_s: float) -> Iterator[str]:
    """What a comparison of these benchmarks will take on this machine by its calibration, and which
    ones the budget cannot decide. `bands` are their thresholds as log-ratios. Raises
    NotReadError."""
    path = _newest(records / slug(machine()))
    calibration = read(path, Calibration) if path else None
    seconds, known = GUESS_S, []
    if calibration is not None:
        seconds = calibration.seconds_per_restart
        rows = calibration.benchmarks
        known = [(rows[name].sd, band) for name, band in bands.items() if name in rows]
        restarts = [restarts_to_settle(*of) for of in known]
        date = calibration.date[:10]
    reached = max(1, int(budget_s / (LOOKS[0] * seconds)))
    if reached < len(bands):
        guessed = "" if calibration else ", if a restart takes as long here as it usually does"
        yield (
            f"the budget has {budget_s:.0f} s of timing: {LOOKS[0]} restarts, which most verdicts "
            f"take at the least, of about {reached} of {len(bands)} benchmarks{guessed}; "
            "--bench chooses, --budget gives more time"
        )
    if not known:
        return
    line = (
        f"by the calibration of {date} about "
        f"{seconds * sum(n or LOOKS[-1] for n in restarts):.0f} s of timing"
    )
    if open_ := restarts.count(None):
        line += f"; {open_} of {len(known)} are too noisy here to be called the same"
    yield line


def advice() -> list[str]:
    """What makes times noisy on this machine, as far as it can be seen, with the remedy."""
    cores = len(os.sched_getaffinity(0))
    lines = []
    load = os.getloadavg()[0]
    if load > 1 + _LOAD:
        lines.append(f"load is {load:.1f}: something else runs; end it")
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor not in (None, "performance"):
        lines.append(f"governor is {governor}: `cpupower frequency-set -g performance`")
    if _read("/sys/devices/system/cpu/smt/active") == "1":
        lines.append("SMT is on: a neighbour shares the core; `echo off > …/cpu/smt/control`")
    if _read("/sys/devices/system/cpu/intel_pstate/no_turbo") == "0":
        lines.append("turbo is on: `echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo`")
    if _read("/proc/sys/kernel/randomize_va_space") == "0":
        lines.append("addresses are not random (ASLR off): every restart has one memory layout")
    if cores < 2:
        lines.append("one core: whatever else runs takes time from the benchmark")
    return lines


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None
