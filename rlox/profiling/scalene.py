"""scalene: totals per line, and the stacks of its samples, Python and native.

It runs the child itself and is switched on inside it, after the warm-up. Only `--cpu-only`: with
the GPU on, scalene starts torch.profiler with stacks and a run takes ten times as long.
"""

from __future__ import annotations

import bisect
import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from rlox.profiling.layers import classify
from rlox.profiling.phases import phase_by_line
from rlox.profiling.samples import MAIN_THREAD, Frame, Sample, Samples, short_module

PROFILE = "scalene.json"
_LAUNCHER = "run_child.py"
_TOP_LINES = 40


def unavailable() -> str | None:
    """Why scalene cannot be used here, with the remedy; None if it can."""
    if importlib.util.find_spec("scalene") is None:
        return "scalene is not installed: pip install scalene"
    return None


def command(spec: Path, folder: Path) -> list[str]:
    """The command that runs the child of `spec` under scalene, leaving its profile in `folder`."""
    # The program's folder goes first on sys.path, so it is not this one: it has modules named like
    # the tools that they drive.
    launcher = folder / _LAUNCHER
    launcher.write_text("from rlox.profiling.child import main\n\nmain()\n", encoding="utf-8")
    options = ["--cpu-only", "--profile-all", "--off", "--stacks", "--cpu-percent-threshold", "0"]
    outfile = str(folder / PROFILE)
    return [
        *(sys.executable, "-m", "scalene", "run", *options, "-o", outfile),
        *(str(launcher), "---", str(spec)),
    ]


def load(folder: Path, seconds: float) -> Samples:
    """The main thread's stacks, classified as any sampler's; each stands for its share of
    `seconds`, the time that was sampled.

    Raises:
        ValueError: scalene left no usable profile (it ends with status 0 all the same).
    """
    profile = _read(folder)
    libraries = _Libraries(folder / "maps.txt")
    stacks = profile.get("combined_stacks", [])
    main = profile.get("main_thread_id")
    counts: dict[int, int] = defaultdict(int)
    for event in profile.get("combined_stacks_timeline", []):
        if event["thread_id"] == main:
            counts[event["stack_index"]] += event["count"]
    total = sum(counts.values())
    if not total:
        raise ValueError("scalene's profile holds no stack of the training thread")
    period = seconds / total
    samples = []
    for index, count in counts.items():
        frames = tuple(_frame(raw, libraries) for raw in _frames(stacks[index]))
        phase = phase_by_line(frames)
        layer = classify(frames, phase)
        shown = tuple(frame._replace(module=short_module(frame.module)) for frame in frames)
        samples += [Sample(shown, phase, layer, period, MAIN_THREAD)] * count
    return Samples("scalene", samples, period)


def lines(folder: Path) -> list[dict[str, Any]]:
    """Scalene's totals per line, by share: file, line, source, share of the program's time.

    A line's time is given whole: how scalene divides it into Python and native is off by more than
    ten points. Lines in which other threads wait are left out.
    """
    found = []
    for path, file in _read(folder)["files"].items():
        module = short_module(path)
        if module == "threading.py" or module.startswith("scalene/"):
            continue
        for line in file["lines"]:
            percent = line["n_cpu_percent_python"] + line["n_cpu_percent_c"] + line["n_sys_percent"]
            if percent > 0:
                source = line["line"].strip()
                found.append(
                    {"file": module, "line": line["lineno"], "source": source, "share": percent}
                )
    total = sum(line["share"] for line in found) or 1.0
    found.sort(key=lambda line: -line["share"])
    return [line | {"share": round(line["share"] / total, 5)} for line in found[:_TOP_LINES]]


def _read(folder: Path) -> dict[str, Any]:
    try:
        profile = json.loads((folder / PROFILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"scalene left no readable profile: {error}") from error
    if not isinstance(profile, dict) or not profile.get("files"):
        raise ValueError("scalene's profile is empty: its window was too short, ask for more")
    return profile


def _frames(stack: list[Any]) -> list[dict[str, Any]]:
    """A combined stack is its frames, outermost first, in some versions followed by a count."""
    return stack[0] if stack and isinstance(stack[0], list) else stack


def _frame(raw: dict[str, Any], libraries: _Libraries) -> Frame:
    if raw["kind"] == "py":
        return Frame(raw["display_name"], raw["filename_or_module"], raw["line"])
    module = raw["filename_or_module"] or libraries.at(raw["ip"])
    return Frame(raw["display_name"] or "[unknown]", module)


class _Libraries:
    """Which library lies at an address, from the program's memory map."""

    def __init__(self, maps: Path) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._paths: list[str] = []
        if not maps.exists():
            return
        for entry in maps.read_text(encoding="utf-8").splitlines():
            fields = entry.split(maxsplit=5)
            start, end = (int(part, 16) for part in fields[0].split("-"))
            self._starts.append(start)
            self._ends.append(end)
            self._paths.append(fields[5] if len(fields) > 5 else "[anon]")

    def at(self, address: int | None) -> str:
        index = bisect.bisect_right(self._starts, address or 0) - 1
        if index >= 0 and address is not None and address < self._ends[index]:
            return self._paths[index]
        return "[unknown]"
