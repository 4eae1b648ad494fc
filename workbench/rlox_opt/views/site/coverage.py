"""How often predicted intervals contained the result, over time: those on the cards, and those that
the ledger proposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlox_opt.history.ledger import Line
from rlox_opt.history.predicted import COVERAGE, Checked, Held, checked, over_time
from rlox_opt.views import units
from rlox_opt.views.site.layout import Key

_LINES = {
    "told": "on the cards",
    "left_out": "as wide as all others so far say",
    "earlier": "as wide as earlier ones say",
}
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LEAST = 2  # points of a line
_APART = 0.25  # of the width, between two dates: on a phone a date takes as much


class _Level(NamedTuple):
    """A share across the picture, and how far below its top that lies, in per cent."""

    share: str
    top: str


class Coverage(NamedTuple):
    """The shares over the measurements in order: `lines` as "x,y x,y …" in per cent of the picture,
    `days` as (x, day). `rows` are (when, what) with the words of each line; `told` is a sentence on
    the last values."""

    told: str
    keys: list[Key]
    lines: list[str]
    levels: list[_Level]
    target: _Level
    days: list[tuple[str, str]]
    rows: list[tuple[str, str, list[str]]]


def coverage(ledger: Sequence[Line]) -> Coverage | None:
    """The figures for the ledger's page; None if too little was measured."""
    known = checked(ledger)
    if len(known) < _LEAST:
        return None
    steps = over_time(known)
    last = steps[-1]
    told = (
        f"On the cards {_words(last.told)} held. As wide as the errors of all others say, "
        f"{_words(last.left_out)} would have; as wide as those of earlier ones say, "
        f"{_words(last.earlier)}. The target is {COVERAGE * 100:.0f} %."
    )
    rows = [
        (
            f"{step.last.date:%Y-%m-%d %H:%M}",
            step.last.id,
            [_words(getattr(step, name)) for name in _LINES],
        )
        for step in steps
    ]

    def x(index: int) -> str:
        return f"{100 * index / (len(steps) - 1):.2f}"

    def points(name: str) -> str:
        of: list[tuple[int, Held]] = [(n, getattr(step, name)) for n, step in enumerate(steps)]
        return " ".join(f"{x(n)},{100 - 100 * y.share:.2f}" for n, y in of if y.of)

    return Coverage(
        told,
        [Key(title, f"line{n}", n) for n, title in enumerate(_LINES.values())],
        [points(name) for name in _LINES],
        [_level(tick) for tick in _TICKS],
        _level(COVERAGE),
        [(x(n), day) for n, day in _days([step.last for step in steps])],
        rows,
    )


def _level(share: float) -> _Level:
    return _Level(f"{100 * share:g} %", f"{100 - 100 * share:g}")


def _days(measured: Sequence[Checked]) -> list[tuple[int, str]]:
    """Where each day begins, without dates for which there is no room."""
    room = _APART * len(measured)
    told: list[tuple[int, str]] = []
    for n, of in enumerate(measured):
        day = f"{of.date:%Y-%m-%d}"
        begins = not told or (day != told[-1][1] and n - told[-1][0] >= room)
        if begins and len(measured) - n >= room / 2:  # a date is centred in its room
            told.append((n, day))
    return told


def _words(held: Held) -> str:
    return f"{held.inside} of {held.of}" if held.of else units.MISSING
