"""scalene: totals of source lines, and the stacks of its samples, Python and native.

It starts the child process itself, and is switched on inside it after the warm-up. It is used with
`--cpu-only`: with the GPU on, scalene starts torch.profiler with stacks, and a run takes ten times
as long.
"""

from __future__ import annotations

import bisect
import importlib.util
import json
import linecache
import sys
from collections import defaultdict
from operator import itemgetter
from pathlib import Path
from typing import Any

from rlox_opt.sampling.addresses import resolver
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.phases import phase_by_line
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spec import Spec

PROFILE = "scalene.json"
RATE = 100  # Hz of CPU time, its own default
_LAUNCHER = "run_child.py"
_TOP_LINES = 40


def unavailable() -> str | None:
    """Why scalene cannot be used here, with the remedy; None if it can."""
    if importlib.util.find_spec("scalene") is None:
        return "scalene is not installed: pip install scalene"
    return None


def command(spec: Spec, folder: Path) -> list[str]:
    """The command that runs a child under scalene, leaving its profile in `folder`."""
    # The folder of the program that Python starts is first on sys.path, so it must hold no modules.
    launcher = folder / _LAUNCHER
    text = f"import runpy\n\nrunpy.run_path({spec.child!r}, run_name='__main__')\n"
    launcher.write_text(text, encoding="utf-8")
    options = ["--cpu-only", "--profile-all", "--off", "--stacks", "--cpu-percent-threshold", "0"]
    outfile = str(folder / PROFILE)
    return [
        *(sys.executable, "-m", "scalene", "run", *options, "-o", outfile),
        *(str(launcher), "---", str(spec.save())),
    ]


def load(folder: Path, classifier: Classifier, seconds: float) -> Samples:
    """The main thread's stacks, classified as those of any sampler. Each stands for its share of
    `seconds`, the time that was sampled.

    Raises:
        ValueError: scalene left no usable profile. Its exit status is 0 even then.
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
    frames_of = {
        index: [_frame(raw, libraries, classifier) for raw in _without_interpreter(stacks[index])]
        for index in counts
    }
    # Scalene has no symbols of the extension, so addresses are looked up in its line tables.
    ours = {f for frames in frames_of.values() for f in frames if classifier.is_extension(f.module)}
    whole = resolver(ours)
    samples = []
    for index, count in counts.items():
        frames = tuple(frame for raw in frames_of[index] for frame in whole(raw))
        phase = phase_by_line(frames)
        layer = classifier.classify(frames, phase)
        samples += [Sample(classifier.shown(frames), phase, layer, period, MAIN_THREAD)] * count
    return Samples("scalene", samples, period)


def lines(folder: Path, classifier: Classifier) -> list[dict[str, Any]]:
    """Scalene's totals per line, by share: file, line, source, share of the program's time.

    A line's time is not divided: scalene's division into Python and native is wrong by more than
    ten points. Lines in which other threads wait are left out.
    """
    rows = []
    for path, file in _read(folder)["files"].items():
        module = classifier.short_module(path)
        if module == "threading.py" or module.startswith("scalene/"):
            continue
        for line in file["lines"]:
            percent = line["n_cpu_percent_python"] + line["n_cpu_percent_c"] + line["n_sys_percent"]
            if percent > 0:
                number = line["lineno"]
                source = linecache.getline(path, number).strip()  # scalene's own text is escaped
                rows.append({"file": module, "line": number, "source": source, "share": percent})
    total = sum(line["share"] for line in rows) or 1.0
    rows.sort(key=lambda line: -line["share"])
    return [line | {"share": round(line["share"] / total, 5)} for line in rows[:_TOP_LINES]]


def _read(folder: Path) -> dict[str, Any]:
    try:
        profile = json.loads((folder / PROFILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"scalene left no readable profile: {error}") from error
    if not isinstance(profile, dict) or not profile.get("files"):
        raise ValueError("scalene's profile is empty: its window was too short, ask for more")
    return profile


def _without_interpreter(stack: list[Any]) -> list[dict[str, Any]]:
    """The Python frames, then the native ones below the innermost of them.

    A stack is [frames, count] or the frames alone; the native frames begin at the program's entry,
    so the interpreter's loop is among them once for each Python frame.
    """
    frames = stack[0] if stack and isinstance(stack[0], list) else stack
    python = [frame for frame in frames if frame["kind"] == "py"]
    native = [frame for frame in frames if frame["kind"] != "py"]
    loops = [i for i, frame in enumerate(native) if "_PyEval_EvalFrame" in frame["display_name"]]
    return python + native[loops[-1] + 1 if loops else 0 :]


def _frame(raw: dict[str, Any], libraries: _Libraries, classifier: Classifier) -> Frame:
    """One frame. For a frame of the extension, `line` is the address in its file."""
    if raw["kind"] == "py":
        return Frame(raw["display_name"], raw["filename_or_module"], raw["line"])
    module, address = libraries.at(raw["ip"])
    name = raw["display_name"] or "[unknown]"
    return Frame(name, module, address if classifier.is_extension(module) else None)


class _Libraries:
    """The libraries by address, from the program's memory map."""

    def __init__(self, maps: Path) -> None:
        self._maps: list[tuple[int, int, int, str]] = []
        if maps.exists():
            for entry in maps.read_text(encoding="utf-8").splitlines():
                extent, _, offset, *_, last = [*entry.split(maxsplit=5), "[anon]"][:6]
                start, end = (int(part, 16) for part in extent.split("-"))
                self._maps.append((start, end, int(offset, 16), last))

    def at(self, ip: int | None) -> tuple[str, int | None]:
        """The library's path and the offset in its file; ("[unknown]", None) outside all of
        them."""
        index = bisect.bisect_right(self._maps, ip or 0, key=itemgetter(0)) - 1
        if ip is not None and index >= 0:
            start, end, offset, path = self._maps[index]
            if ip < end:
                return path, ip - start + offset
        return "[unknown]", None
