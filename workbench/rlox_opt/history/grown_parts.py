"""The parts of a benchmark's change: samples of both sides, counted by the owner of the code, by
native and Python function, by line, and by the functions that the change touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rlox_opt.history.cause import Cause
from rlox_opt.history.watched import PYTHON
from rlox_opt.project.changed import Changed
from rlox_opt.project.explained import Told, Why
from rlox_opt.sampling.functions import Text, enclosing, short
from rlox_opt.sampling.layers import is_python
from rlox_opt.sampling.samples import Frame, Samples
from rlox_opt.sampling.whose import INTERPRETER, OWN, Whose, title
from rlox_opt.stats.grown import Grown, Tally, grown, shares

_SMALL = 0.05  # parts of a change that are smaller are left out
_SMALL_OF_ALL, _MOST_OF_ALL = 0.01, 15  # the same for parts of a time, and how many are kept
_ALL = 0.9  # of the change: as good as all of it
_MOST = 6  # parts of a kind that are kept
_CLEAR = 0.15  # half an interval's width below which no more samples are needed


class _Label(NamedTuple):
    """What identifies a part: the owner of the code, its place and name; for a line its number."""

    whose: str
    place: str = ""
    name: str = ""
    line: int = 0


_Tallies = dict[str, Tally[_Label]]  # by side


class Parts:
    """Counts samples, and says for each kind of label what grew."""

    def __init__(
        self, whose: Whose, differs: Changed, ratio: float | None, text: Mapping[str, Text]
    ) -> None:
        """`text` gives the sources by side; their lines name a function more surely than a symbol
        does. Without a `ratio` there is only head, and parts are those of its time."""
        self._whose, self._differs, self._ratio, self._text = whose, differs, ratio, text
        self._tallies: defaultdict[str, _Tallies] = defaultdict(
            lambda: {"base": Tally(), "head": Tally()}
        )
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, sampler: str, side: str, seen: Samples) -> None:
        """Count a sampler's samples of one side."""
        self._counts[sampler][side == "head"] += len(seen.samples)
        for sample in seen.samples:
            if sampler == PYTHON:
                self._add_python(side, sample.frames, sample.weight)
            else:
                part = self._whose.part(sample.layer, sample.frames)
                self._add_native(side, part, sample.frames, sample.weight)

    def tell(self, found: Why) -> None:
        """Put all results into `found`."""
        found.samples = {of: (base, head) for of, (base, head) in self._counts.items()}
        found.layers, found.native = self.layers(), self.native()
        found.functions, found.lines = self.functions(), self.lines()
        found.touched = self.touched()

    def settled(self, samplers: Sequence[str]) -> bool:
        """Whether more samples would only make the same result more exact: for each sampler, the
        largest part is known with a small error."""
        kinds = ["functions" if sampler == PYTHON else "layers" for sampler in samplers]
        leading = [self._grown(kind)[:1] for kind in kinds]
        return all(of and of[0].surely and of[0].part - of[0].low < _CLEAR for of in leading)

    def layers(self) -> list[Told]:
        """Which owners' code grew. Native stacks seldom show whose Python code it was. If Python is
        all of the change, or there are no native stacks, the Python stacks decide."""
        every = self._grown("layers")
        python = f"python:{INTERPRETER}"
        if not every or (every[0].label.whose == python and every[0].high >= _ALL):
            return self._told("python", _told_whose) or self._told("layers", _told_whose)
        return self._told("layers", _told_whose)

    def cause(self) -> Cause:
        """The parts by layer alone, and for the layer that grew most the function that did: the
        project's own if native stacks name one, otherwise a Python function. Raises ValueError if
        there are no samples."""
        by_layer: defaultdict[str, float] = defaultdict(float)
        for of in self._grown("layers") or self._grown("python"):
            by_layer[of.label.whose.partition(":")[0]] += of.part
        if not by_layer:
            raise ValueError("no sampler saw any of its calls on both sides")
        assert self._ratio is not None
        layer = max(by_layer, key=by_layer.__getitem__)
        named = [
            of
            for of in self._grown("native")
            if of.label.whose.partition(":")[0] == layer and self._text["head"](of.label.place)
        ] or [of for of in self._grown("functions") if of.label.whose == OWN]
        told = {name: round(part, 4) for name, part in by_layer.items() if round(part, 4)}
        if not named:
            return Cause(self._ratio, layer, told)
        label, part = named[0].label, named[0].part
        return Cause(self._ratio, layer, told, f"{label.place}:{label.name}", round(part, 4))

    def native(self) -> list[Told]:
        """Which native functions grew."""
        return self._told("native", self._told_native)

    def functions(self) -> list[Told]:
        """Which Python functions grew, each without the functions that it calls."""
        return self._told("functions", self._told_function)

    def lines(self) -> list[Told]:
        """Which lines of the program's own grew, with the other code that they call."""
        return self._told("lines", self._told_line)

    def touched(self) -> list[Told]:
        """Of the functions that the change touches, those on the stacks of what grew. They are
        ordered by the time spent in them without other touched functions that they call."""
        within = {of.label: of for of in self._grown("within")}
        found = []
        for kind, make in (("touched", self._told_function), ("touched native", self._told_native)):
            for of in self._grown(kind):
                if of.surely and of.part >= _SMALL:
                    inner = within.get(of.label)
                    found.append((inner.part if inner else 0.0, make(of)))
        found.sort(key=lambda each: (-round(each[0], 2), -each[1].part))
        return [replace(told, within=round(part, 4)) for part, told in found[:_MOST]]

    def _add_native(self, side: str, part: str, frames: Sequence[Frame], weight: float) -> None:
        self._tallies["layers"][side].add(weight, _Label(part))
        self._tallies["native"][side].add(weight, *self._native_function(side, part, frames))
        names = (self._native(side, part, frame) for frame in frames)
        touched = [
            of for of in names if of and of.name.rpartition("::")[2] in self._differs.compiled
        ]
        self._tallies["touched native"][side].add(weight, *dict.fromkeys(touched))

    def _native_function(self, side: str, part: str, frames: Sequence[Frame]) -> Iterator[_Label]:
        """The innermost native function that does not work for its caller."""
        for frame in reversed(frames):
            if is_python(frame):
                return
            if label := self._native(side, part, frame):
                yield label
                return

    def _native(self, side: str, part: str, frame: Frame) -> _Label | None:
        if self._whose.native(frame) is None:
            return None
        place = self._whose.place(frame.module)
        source = self._text[side](place)
        if source is not None:
            name = enclosing(source, frame.line) if frame.line else None
            return _Label(part, place, name or short(frame.name).rpartition("::")[2])
        return _Label(part, place, short(frame.name))

    def _add_python(self, side: str, frames: Sequence[Frame], weight: float) -> None:
        stack = [self._python(side, frame) for frame in frames]
        self._tallies["functions"][side].add(weight, *stack[-1:])
        leaf = [_Label(f"python:{of.whose}") for of in stack[-1:]]
        self._tallies["python"][side].add(weight, *leaf)
        own = [(frame, label) for frame, label in zip(frames, stack, strict=True)
               if label.whose == OWN]  # fmt: skip
        self._tallies["lines"][side].add(weight, *(self._line(side, *of) for of in own[-1:]))
        touched = [of for _, of in own if of.name in self._differs.file(of.place).touched]
        self._tallies["touched"][side].add(weight, *dict.fromkeys(touched))
        self._tallies["within"][side].add(weight, *touched[-1:])

    def _python(self, side: str, frame: Frame) -> _Label:
        """The function of a frame. For the program's own code, its source line decides."""
        inner = self._whose.inner(frame.module)
        if inner is None:
            whose = self._whose.owner(frame.module) or INTERPRETER
            name = frame.name.replace(".<locals>", "")
            return _Label(whose, self._whose.place(frame.module), name)
        function = self._differs.file(inner).function(side, frame.line or 0)
        return _Label(OWN, inner, function or frame.name.replace(".<locals>", ""))

    def _line(self, side: str, frame: Frame, label: _Label) -> _Label:
        line = self._differs.file(label.place).in_head(side, frame.line or 0)
        return label._replace(line=line or -(frame.line or 0))

    def _grown(self, kind: str) -> list[Grown[_Label]]:
        of = self._tallies[kind]
        if self._ratio is None:
            return shares(of["head"])
        if not of["base"].total or not of["head"].total:
            return []
        return grown(of["base"], of["head"], self._ratio)

    def _told(self, kind: str, make: Callable[[Grown[_Label]], Told]) -> list[Told]:
        """The parts that certainly grew; if there is none, the most probable one."""
        every = self._grown(kind)
        large = [of for of in every if of.part >= (_SMALL if self._ratio else _SMALL_OF_ALL)]
        sure = [of for of in large if of.surely]
        return [make(of) for of in (sure or large[:1])[: _MOST if self._ratio else _MOST_OF_ALL]]

    def _told_native(self, of: Grown[_Label]) -> Told:
        label = of.label
        hit = label.name.rpartition("::")[2] in self._differs.compiled
        return Told(title(label.whose), of.part, of.low, of.high, label.place, label.name,
                    in_diff=hit if self._differs.compiled else None)  # fmt: skip

    def _told_function(self, of: Grown[_Label]) -> Told:
        label = of.label
        line, hit = 0, None
        if label.whose == OWN:
            file = self._differs.file(label.place)
            line, hit = file.begins(label.name) or 0, label.name in file.touched
        return Told(title(f"python:{label.whose}"), of.part, of.low, of.high, label.place,
                    label.name, line, hit)  # fmt: skip

    def _told_line(self, of: Grown[_Label]) -> Told:
        label = of.label
        file = self._differs.file(label.place)
        there = max(label.line, 0)
        return Told(title(f"python:{label.whose}"), of.part, of.low, of.high, label.place,
                    label.name, there, there in file.new, file.text(there))  # fmt: skip


def _told_whose(of: Grown[_Label]) -> Told:
    return Told(title(of.label.whose), of.part, of.low, of.high)
