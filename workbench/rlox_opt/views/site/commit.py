"""The page of a commit: what changed at it, in which layer, and how it was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rlox_opt.history.difference import Difference, Part
from rlox_opt.history.store import Cell
from rlox_opt.views.differential import flamegraph
from rlox_opt.views.site.causes import differences
from rlox_opt.views.site.figures import amount, change
from rlox_opt.views.site.layout import Page, commit_path
from rlox_opt.views.site.model import KINDS, Commit, EntryFile, History

_MOST = 15  # differences to the recording before that are listed


class _Layer(NamedTuple):
    """A layer before and after; `widths` are in per cent of the widest."""

    name: str
    widths: tuple[str, str]
    part: Part


class _Function(NamedTuple):
    """A function that changed, and the layer that it is of."""

    name: str
    layer: str
    part: Part


class _Difference(NamedTuple):
    """The parts of `of` for a trainer."""

    algo: str
    of: str
    layers: list[_Layer]
    functions: list[_Function]


class _Reading(NamedTuple):
    """A figure before and here, and the difference."""

    benchmark: str
    figure: str
    before: str
    here: str
    difference: str


class _Compared(NamedTuple):
    """The largest differences to the recording before, which is of the commit `base`."""

    title: str
    base: Commit
    readings: list[_Reading]


def commit(history: History, of: Commit) -> Page:
    """The page."""
    found = {recording.title: differences(history, recording) for recording in of.recordings}
    values = {
        "of": of,
        "before": history.commits[of.index - 1] if of.index else None,
        "after": next(iter(history.commits[of.index + 1 :]), None),
        "parent": history.by_hash.get(of.parent or ""),
        "moved": sorted(
            history.moved_at.get(of.hash, []), key=lambda m: -abs(math.log(m.change.ratio))
        ),
        "built_unlike": {
            recording.title: recording.entry.built_unlike(before.entry)
            for recording in of.recordings
            if (before := history.before(recording))
        },
        "layers": {title: _differences(own) for title, own in found.items() if own},
        "flame": flamegraph(found),
        "compared": list(_compared(history, of)),
    }
    return Page(commit_path(of.hash), "commit", values)


def _differences(found: Mapping[str, Difference]) -> list[_Difference]:
    """The layers of training before and after, and the functions that changed most."""
    return [
        _Difference(name.upper(), of.of, _layers(of), [_function(part) for part in of.functions()])
        for name, of in found.items()
    ]


def _layers(of: Difference) -> list[_Layer]:
    parts = [part for part in of.layers() if max(part.before, part.after) > 0]
    most = max((max(part.before, part.after) for part in parts), default=1.0)

    def width(share: float) -> str:
        return f"{100 * share / most:.1f}"

    return [_Layer(part.name, (width(part.before), width(part.after)), part) for part in parts]


def _function(part: Part) -> _Function:
    layer, _, name = part.name.partition(":")
    return _Function(name, layer, part)


def _compared(history: History, of: Commit) -> Iterator[_Compared]:
    """The largest differences of each recording to the one before, level changes or not."""
    for recording in of.recordings:
        before = history.before(recording)
        if before is None:
            continue
        found = sorted(_pairs(before, recording), key=lambda pair: -abs(math.log(pair[2])))[:_MOST]
        if found:
            base = history.by_hash[before.entry.commit]
            yield _Compared(recording.title, base, [_reading(*pair) for pair in found])


def _reading(old: Cell, cell: Cell, ratio: float) -> _Reading:
    return _Reading(
        cell.benchmark,
        KINDS[cell.kind][1],
        amount(cell.kind, old.value),
        amount(cell.kind, cell.value),
        change(ratio),
    )


def _pairs(before: EntryFile, after: EntryFile) -> Iterator[tuple[Cell, Cell, float]]:
    old = {(cell.benchmark, cell.kind): cell for cell in before.entry.cells}
    for cell in after.entry.cells:
        was = old.get((cell.benchmark, cell.kind))
        if was is None:
            continue
        of, to = (was.ratio, cell.ratio) if was.ratio and cell.ratio else (was.value, cell.value)
        if of and to and to != of:
            yield was, cell, to / of
