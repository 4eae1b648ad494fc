"""Why a benchmark takes longer or shorter than before: whose code, which functions, which lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlox_opt.sampling.whose import OWN, title
from rlox_opt.system.output import few
from rlox_opt.views import units
from rlox_opt.views.markdown import escaped

if TYPE_CHECKING:
    from rlox_opt.project.explained import Told, Why
    from rlox_opt.project.side_by_side import ComparedBuilds

_OWN = title(f"python:{OWN}")
_FIRST = 3  # benchmarks that are named


def lines(found: ComparedBuilds) -> Iterator[str]:
    """Lines of text on each benchmark that was examined."""
    for of in found.why:
        yield ""
        yield from of_one(of)
    if told := unexplained(found):
        yield told


def of_one(of: Why) -> Iterator[str]:
    """The same for one benchmark."""
    yield heading(of)
    for kind, rows in sections(of):
        yield f"  {kind}"
        yield from (f"    {row}" for row in rows)
    yield from (f"  {note}" for note in notes(of))


def markdown(found: ComparedBuilds) -> Iterator[str]:
    """The same for a pull request."""
    for of in found.why:
        yield f"\n**{escaped(heading(of))}**\n"
        for kind, rows in sections(of):
            yield f"- {kind}"
            yield from (f"  - {escaped(row)}" for row in rows)
        yield from (f"- {escaped(note)}" for note in notes(of))
    if told := unexplained(found):
        yield f"\n{escaped(told)}"


def heading(of: Why) -> str:
    """ "Why toys.time_work takes 2.02 times as long"."""
    if of.ratio is None:
        return f"Where the calls of {of.benchmark} spend their time"
    return f"Why {of.benchmark} takes {of.ratio:.3g} times as long"


def sections(of: Why) -> Iterator[tuple[str, list[str]]]:
    """What grew or shrank, by kind with its rows; kinds without rows are left out."""
    did = "grew" if (of.ratio or 0) > 1 else "shrank"
    which = "that take time" if of.ratio is None else f"that {did}"
    if surely := [told for told in of.touched if told.surely]:
        yield (
            f"functions that the change touches, through which runs what {did}",
            [f"{_part(told)}  {_function(told, '')}{_within(told)}" for told in surely],
        )
    kinds = (
        ("whose code it is" if of.ratio is None else f"whose code {did}", of.layers, _whose),
        (f"functions of Python {which}, each without what it calls", of.functions, _function),
        (f"native functions {which}", of.native, _native),
        (f"lines {which}, with what they call of others{_new(of)}", of.lines, _line),
    )
    for kind, every, told_as in kinds:
        if rows := [f"{_part(told)}  {told_as(told)}" for told in every if told.surely]:
            yield kind, rows


def notes(of: Why) -> Iterator[str]:
    """What could not be found out, and the number of samples behind the rest."""
    for kind, every in (("whose code", of.layers), ("which function of Python", of.functions)):
        if every and not every[0].surely:
            likeliest = every[0]
            yield (
                f"Not told: {kind}, for the samples are too few for a change of this size; the "
                f"likeliest is {likeliest.where} ({_part(likeliest)})."
            )
    if of.ratio and of.functions and of.functions[0].surely and not of.touched:
        yield "No function of Python that the change touches is on the stacks of what changed."
    if of.ratio and any(told.low > 1 for told in (*of.layers, *of.functions, *of.native)):
        yield (
            "A part of more than 100 % changed by more than the whole did: other parts changed in "
            "the opposite direction, and took back some of it."
        )
    for reason in of.missing:
        yield f"Not seen: {reason}."
    if of.samples:
        counts = (f"{sum(n)} by {_sampler(name)}" for name, n in of.samples.items())
        whole = "Parts of the time" if of.ratio is None else "Parts of the change"
        yield f"{whole} with intervals of 95 %, by samples: {', '.join(counts)}."


def unexplained(found: ComparedBuilds) -> str:
    """The benchmarks for which there was no time; "" without any."""
    if not (names := found.unexplained):
        return ""
    return (
        f"No time was left to look why {few(names, _FIRST)} changed: a larger "
        "--budget, or --why, which has time of its own."
    )


def _part(told: Told) -> str:
    """ "92 % (88–96)"."""
    low, high = (f"{100 * end:.0f}".replace("-", "−") for end in (told.low, told.high))
    return f"{units.whole_percent(told.part)} ({low}–{high})"


def _whose(told: Told) -> str:
    return told.whose


def _new(of: Why) -> str:
    return " (+ new)" if any(told.in_diff for told in of.lines) else ""


def _function(told: Told, touched: str = ", touched") -> str:
    where = f"{told.place}:{told.line}" if told.line else told.place
    whose = "" if told.whose == _OWN else f", {told.whose}"
    hit = touched if told.in_diff else ""
    return f"{told.name} ({where}{whose}{hit})"


def _within(told: Told) -> str:
    """How much of it is its own, without other touched functions that it calls."""
    if told.within is None or told.part - told.within < 0.05:
        return ""
    return f"; {units.whole_percent(max(told.within, 0.0))} but for the others here"


def _native(told: Told) -> str:
    return f"{told.name} ({told.place}, {told.whose}{', touched' if told.in_diff else ''})"


def _line(told: Told) -> str:
    there = f"{told.place}:{told.line}" if told.line else f"{told.place}, a line that is gone"
    return f"{'+' if told.in_diff else ' '} {there}  {told.text}".rstrip()


def _sampler(name: str) -> str:
    return "py-spy without native stacks" if name == "python" else name
