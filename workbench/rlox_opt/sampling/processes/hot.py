"""The functions and lines of a program's own Python that take most time, including the library code
that they call; and the stacks of all work, for a flamegraph.

A program's own code is what lies in no library. If the program itself is installed, such as `-m
package` or a console script, its own code is that package.
"""

from __future__ import annotations

import linecache
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rlox_opt.project.layers import Layers
from rlox_opt.sampling.processes.components import NOT_BUSY, folded
from rlox_opt.sampling.processes.inside.rlox_opt_segments import RECORDER
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.whose import OWN, STANDARD, Whose

_MOST = 20  # functions, and lines
_LEAST = 0.005  # of the busy time
_ONE = 0.9  # of a block: a line that takes more contains the block that is to be divided
_PART = 0.05  # of the busy time: what takes less is not named as a part
_LAYERS = 3  # of a function or a line
_INSIDE = f"{Path(__file__).with_name('inside')}/"  # the recorder's own frames

Json = dict[str, Any]
Place = tuple[str, str, int]  # a file, a function in it, and a line (0: the whole function)


class Seen(NamedTuple):
    """The samples of one process, and the process's name."""

    title: str
    samples: Samples


class _Own:
    """Which files are the program's own, and how their paths are shown."""

    def __init__(self, seen: list[Seen], layers: Layers) -> None:
        anyones = Whose(layers, ())
        roots = Counter(
            frame.module
            for _, samples in seen
            for sample in samples.samples
            for frame in sample.frames[:_LAYERS]
            if frame.name == "<module>" and anyones.owner(frame.module) != STANDARD
        )
        folders = [_folder(_called_by(module, seen)) for module, _ in roots.most_common(1)]
        self.whose = Whose(layers, folders, scripts=roots)  # whatever their names

    def __call__(self, frame: Frame) -> bool:
        file = frame.module
        if not self.whose.is_python(frame):
            return False
        return file.startswith("/") and self.whose.owner(file) in (None, OWN)


def _called_by(script: str, seen: list[Seen]) -> str:
    """The file of a package that a console script calls; any other script itself."""
    if not (Path(script).parent / "python").exists():
        return script
    called = Counter(
        inner.module
        for _, samples in seen
        for sample in samples.samples
        for outer, inner in pairwise(sample.frames[: _LAYERS + 1])
        if outer.module == script and "/" in inner.module.partition("-packages/")[2]
    )
    return next((module for module, _ in called.most_common(1)), script)


def _folder(module: str) -> Path:
    """The folder of a program, or of the installed package if it is one."""
    path = Path(module)
    for above in path.parents:
        if above.parent.name in ("site-packages", "dist-packages"):
            return above
    return path.parent


def hot(seen: list[Seen], layers: Layers) -> Json:
    """`functions` and `lines`, those with most time first. Each has its `place` (a path), `line`,
    `name` of the function, `seconds`, `share` of the busy time, `layers` with their shares, and a
    line its `text`. `parts` are lines into whose calls the main thread's work can be divided; a
    named block around each would show more than one block around all."""
    own = _Own(seen, layers)
    tallies: defaultdict[Place, Counter[str]] = defaultdict(Counter)
    whole = 0.0
    stacks: list[tuple[tuple[Place, ...], float]] = []
    for sample in _busy(seen):
        whole += sample.weight
        at = tuple((f.module, f.name, f.line or 0) for f in sample.frames if own(f))
        if at:
            file, name, line = at[-1]
            for place in dict.fromkeys([(file, name, 0), (file, name, line)]):
                tallies[place][sample.layer] += sample.weight  # type: ignore[assignment]
        if sample.thread == MAIN_THREAD:
            stacks.append((at, sample.weight))

    def told(place: Place, seconds: float) -> Json:
        file, name, line = place
        row = {"place": own.whose.place(file), "line": line, "name": name, "seconds": seconds}
        text = {"text": linecache.getline(file, line).strip()} if line else {}
        return {**row, **text, "share": seconds / whole}

    rows: dict[bool, list[Json]] = {False: [], True: []}
    for place, by_layer in sorted(tallies.items(), key=lambda item: -item[1].total()):
        seconds = by_layer.total()
        if seconds >= _LEAST * whole:
            shares = [[layer, s / seconds] for layer, s in by_layer.most_common(_LAYERS)]
            rows[place[2] > 0].append(told(place, seconds) | {"layers": shares})
    return {
        "functions": rows[False][:_MOST],
        "lines": rows[True][:_MOST],
        "parts": [told(place, seconds) for place, seconds in _parts(stacks, whole)],
    }


def _parts(
    stacks: list[tuple[tuple[Place, ...], float]], whole: float
) -> list[tuple[Place, float]]:
    """The lines of the outermost function that has several lines with much time."""
    for depth in range(max((len(at) for at, _ in stacks), default=0)):
        seconds: defaultdict[Place, float] = defaultdict(float)
        for at, weight in stacks:
            if len(at) > depth:
                seconds[at[depth]] += weight
        if not seconds:
            break
        ranked = sorted(seconds.items(), key=lambda item: -item[1])
        most, of = ranked[0]
        if of < _ONE * sum(seconds.values()):
            long = [(at, of) for at, of in ranked if of >= _PART * whole]
            return long if len(long) > 1 else []
        stacks = [(at, weight) for at, weight in stacks if len(at) > depth and at[depth] == most]
    return []


def stacks_of(seen: list[Seen], layers: Layers) -> Samples:
    """The work of all processes as if one thread had done it. Each thread is a phase of its own,
    with the program's own phases inside."""
    whose = _Own(seen, layers).whose
    short: dict[Frame, Frame] = {}
    found: list[Sample] = []
    tool = ""
    for title, samples in seen:
        tool = samples.tool
        for sample in _busy([Seen(title, samples)]):
            thread = "" if sample.thread == MAIN_THREAD else f" [{folded(sample.thread)}]"
            who = f"{title}{thread}".replace("/", "|")
            for frame in sample.frames:
                if frame not in short:
                    short[frame] = frame._replace(module=whose.place(frame.module))
            frames = tuple(short[frame] for frame in sample.frames)
            phase = f"{who}/{sample.phase}" if sample.phase else who
            found.append(sample._replace(frames=frames, phase=phase, thread=MAIN_THREAD))
    return Samples(tool, found)


def libraries(seen: list[Seen], layers: Layers) -> set[str]:
    """The packages that were at work, by the names by which they are imported."""
    whose = Whose(layers, ())
    modules = {f.module for sample in _busy(seen) for f in sample.frames}
    return {owner for module in modules if (owner := whose.owner(module)) is not None}


def _busy(seen: Iterable[Seen]) -> Iterator[Sample]:
    """The samples of the program's work."""
    for _, samples in seen:
        for sample in samples.samples:
            if sample.weight > 0 and sample.layer not in NOT_BUSY and sample.thread != RECORDER:
                frames = tuple(f for f in sample.frames if not f.module.startswith(_INSIDE))
                yield sample._replace(frames=frames)
