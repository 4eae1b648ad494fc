"""A comparison of two builds in the terminal, and as a table for a pull request; and the results of
a calibration."""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.harness.packages import Failure
from rlox_opt.harness.sequential import Comparison, tally
from rlox_opt.project import blind, calibration, parity
from rlox_opt.project.artefacts import same_parts, same_surroundings
from rlox_opt.project.environments import named_in
from rlox_opt.stats.family import Judgement
from rlox_opt.stats.paired import FLAGGED, zone
from rlox_opt.system.output import few
from rlox_opt.views import units, why
from rlox_opt.views.grid import VERDICTS, Grid, Told, console
from rlox_opt.views.markdown import escaped

if TYPE_CHECKING:
    from rlox_opt.project.side_by_side import ComparedBuilds

_OF_MEMORY = {"slower": "more", "faster": "less"}
_COUNTED = {"instructions": "instr.", "allocations": "alloc."}
_ORDER = ("slower", "faster", "undecided", "same")
# Up to so many skipped benchmarks, and otherwise reasons of skips, have lines of their own. Of
# more, and of those for which there was no time, so many are named.
_EACH, _FIRST = 5, 3
_FILE = re.compile(r"\.py(::|$)")  # in the name of a part: a file of pytest's
# Not what the loader says of a library that is not installed.
_NOT_THERE = re.compile(r"^FileNotFoundError\b|(?<!object file: )No such file or directory\b")
_REMEDY = (
    "; only what git has is in its folder: commit the file, or name it by an absolute path in an "
    "environment variable"
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([A-Za-z]\w*)'")


def show(found: ComparedBuilds) -> None:
    """Print the verdicts, what could not be measured, and how reliable the comparison is."""
    to = console()
    for title, of in (("time", found.times), ("memory and size", found.memory)):
        if of.judgements:
            to.print(_table(title, found, of))
            to.print()
    for line in (*not_measured(found), *closing(found), *why.lines(found)):
        to.print(Told(line))


def _table(title: str, found: ComparedBuilds, of: Comparison) -> Grid:
    counted = _COUNTED if of is found.times and found.counts else {}
    own = ("threshold",) if of.own.keys() & of.judgements else ()
    rows = [
        (
            name,
            f"{judgement.ratio:.3f}",
            _interval(judgement),
            _verdict(judgement, of is found.memory) + _meant(found, name),
            *([_own(of, name)] if own else ()),
            str(judgement.restarts),
            *(_counted(found, name, what) for what in counted),
        )
        for name, judgement in _sorted(of.judgements)
    ]
    headings = (title, "ratio", "99 %", "verdict", *own, "n", *counted.values())
    return Grid(headings, rows, styles=VERDICTS)


def markdown(found: ComparedBuilds) -> Iterator[str]:
    """The same for a pull request: all that is not the same in a table, the rest folded."""
    base, head = found.base.revision.title, found.head.revision.title
    yield f"### {escaped(head)} against {escaped(base)}"
    yield ""
    yield from map(escaped, closing(found))
    yield ""
    yield from (f"- {escaped(line)}" for line in found.notes)
    if alike := parity.facts(found.base, found.head)["same"]:
        yield f"- both sides: {escaped(', '.join(f'{what} {of}' for what, of in alike.items()))}"
    yield ""
    rows = [
        (name, judgement, of is found.memory)
        for of in (found.times, found.memory)
        for name, judgement in _sorted(of.judgements)
    ]
    moved = [row for row in rows if row[1].verdict != "same"]
    same = [row for row in rows if row[1].verdict == "same"]
    if moved:
        yield from _markdown_table(found, moved)
    if same:
        yield f"<details><summary>{len(same)} same</summary>\n"
        yield from _markdown_table(found, same)
        yield "\n</details>"
    yield from (f"- {escaped(line)}" for line in not_measured(found))
    yield from why.markdown(found)


def _markdown_table(
    found: ComparedBuilds, rows: list[tuple[str, Judgement, bool]]
) -> Iterator[str]:
    yield "| benchmark | ratio (99 %) | verdict | restarts | instructions | allocations |"
    yield "|---|---:|---|---:|---:|---:|"
    for name, judgement, memory in rows:
        own = _own(found.memory if memory else found.times, name)
        cells = [
            f"`{name}`".replace("|", r"\|"),  # also within backticks a cell would end there
            f"{judgement.ratio:.3f} ({_interval(judgement)})",
            _verdict(judgement, memory)
            + _meant(found, name)
            + (f" (threshold {own})" if own else ""),
            str(judgement.restarts),
            _counted(found, name, "instructions"),
            _counted(found, name, "allocations"),
        ]
        yield f"| {' | '.join(cells)} |"


def not_measured(found: ComparedBuilds) -> Iterator[str]:
    """A line for each benchmark without a verdict, with the reason."""
    known = named_in(*found.notes, *found.base.packages, *found.head.packages)
    yield from _broken(found.broken, known)
    for side in ("base", "head"):
        gone = [name for name, of in found.missing.items() if of == side]
        if len(gone) > _EACH:
            first = ", ".join(gone[:_EACH])
            yield f"{len(gone)} benchmarks are not in {side}, such as {first}"
        else:
            yield from (f"{name}: not in {side}" for name in gone)
    yield from _skipped(found.skipped())
    yield from _failed(found.failures())


def _skipped(skipped: Mapping[str, Failure]) -> Iterator[str]:
    """A line for each skipped benchmark. Of many, those with the same reason have one line, since a
    mark may skip hundreds; and so have those with rare reasons."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for name, failure in skipped.items():
        where = f"skipped in {failure.side}" if failure.side else "skipped"
        alone = name if len(skipped) <= _EACH else ""
        alike.setdefault((where, failure.reason, alone), []).append(name)
    most = sorted(alike.items(), key=lambda item: -len(item[1]))
    for (where, reason, _), names in most[:_EACH]:
        if len(names) <= _FIRST:
            yield from (f"{name}: {where}: {reason}" for name in names)
        else:
            by = ", as they ask for by" if reason.startswith("NotImplementedError") else ":"
            first = ", ".join(names[:_FIRST])
            yield f"{len(names)} benchmarks are {where}{by} {reason}, such as {first}"
    if rest := [name for _, names in most[_EACH:] for name in names]:
        yield f"skipped for other reasons: {few(rest, _FIRST)}"


def _failed(failures: Mapping[str, Failure]) -> Iterator[str]:
    """A line for each benchmark that fails. Many with the same reason have one line."""
    alike: dict[str, list[str]] = {}
    for name, failure in failures.items():
        alike.setdefault(failure.reason, []).append(name)
    for reason, names in alike.items():
        parts = [[name] for name in names] if len(names) <= _EACH else [names]
        for part in parts:
            sides = " or ".join(sorted({failures[name].side or "" for name in part} - {""}))
            where = f" in {sides}" if sides else ""
            yield f"{few(part, _FIRST)}: {'fails' if len(part) == 1 else 'fail'}{where}: {reason}"


def _broken(broken: Mapping[str, Mapping[str, str]], known: Collection[str] = ()) -> Iterator[str]:
    """A line for each unreadable part of the suite. Modules that are `known` need no remedy."""
    for part in dict.fromkeys(part for of in broken.values() for part in of):
        reasons = {side: of[part] for side, of in broken.items() if part in of}
        told = {side: f"{reason}{_remedy(part, reason, known)}" for side, reason in reasons.items()}
        if len({*told.values()}) == 1:
            yield f"{part}: cannot be read in {' and '.join(told)}: {next(iter(told.values()))}"
        else:
            yield from (f"{part}: cannot be read in {side}: {of}" for side, of in told.items())


def _remedy(part: str, reason: str, known: Collection[str]) -> str:
    """What the user can do about data that git does not have, and about a module that the
    environment lacks, unless it is `known` or bears a name of the suite's."""
    if _FILE.search(part) and _NOT_THERE.search(reason):
        return _REMEDY
    lacking = _NO_MODULE.match(reason)
    if lacking is None or lacking[1] in sys.stdlib_module_names:
        return ""
    own = re.findall(r"\w+", part.partition(".py")[0])
    if lacking[1] in own or not named_in(lacking[1]).isdisjoint(known):
        return ""
    return f"; --with {lacking[1]} adds it, if that is what PyPI calls it"


def closing(found: ComparedBuilds) -> Iterator[str]:
    """The summary, and the limits of the comparison."""
    counts = tally(found.verdicts())
    said = [f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict]]
    if found.needless:
        yield "Both packages are byte for byte the same: nothing was measured (--anyway does)."
        return
    yield f"{', '.join(said) or 'nothing measured'}, in {found.seconds:.0f} s."
    yield from _acknowledged(found)
    yield from _unfinished(found)
    identical = same_parts(found.base, found.head)
    if identical and len(identical) == len(found.base.digests):
        yield "Both packages are byte for byte the same: any difference is " + (
            "noise." if same_surroundings(found.base, found.head) else "that of what they run with."
        )
    elif identical:
        other = "Python files" if identical == ["extension"] else "extension"
        yield f"The two differ in nothing but the {other}."
    if found.coverage:
        yield from blind.told(found.coverage)
    if not found.verdicts():
        return
    flagged = [name for name, j in found.times.aa().items() if j.verdict in FLAGGED]
    yield (
        f"As a check, base was compared with itself: {len(flagged)} of "
        f"{len(found.times.judgements)} flagged"
        + (f" ({', '.join(flagged)}); do not trust the verdicts on these." if flagged else ".")
    )
    yield from _left_open(found)
    yield from _held_back(found)
    yield from _blind(found)
    if not found.complete:
        yield "Interrupted: these are the verdicts so far."


def _left_open(found: ComparedBuilds) -> Iterator[str]:
    """The largest change that those without a verdict may have."""
    left_open = [
        (max(high - 1, 1 - low), name)
        for name, judgement in found.times.judgements.items()
        if judgement.verdict == "undecided" and judgement.ci99
        for low, high in [judgement.ci99]
    ]
    if left_open:
        most, name = max(left_open)
        yield (
            'A verdict that begins with "rather" is undecided. The largest change that an interval '
            f"leaves open is one of {100 * most:.1f} %, of {name}."
        )


def _acknowledged(found: ComparedBuilds) -> Iterator[str]:
    """The acknowledgements of what is slower or larger, or that it exceeds them."""
    for name, (ratio, reason) in found.meant.items():
        up_to = (
            "acknowledged up to" if found.excused(name) else "more than is acknowledged, which is"
        )
        yield f"{name}: {up_to} {ratio:g}×: {reason}"


def _meant(found: ComparedBuilds, name: str) -> str:
    return ", acknowledged" if found.excused(name) else ""


def _unfinished(found: ComparedBuilds) -> Iterator[str]:
    """What more time would bring, as a sentence."""
    if left_out := found.unmeasured():
        yield f"The budget did not suffice for {len(left_out)}: {few(left_out, _FIRST)}."
    foreseen = found.more()
    if foreseen.settled:
        yield (
            f"With about {foreseen.seconds:.0f} s more, {foreseen.settled} more would have a "
            "verdict."
        )
    if foreseen.noisy:
        yield f"{foreseen.noisy} scatter too much for a verdict within {found.within()}."


def _held_back(found: ComparedBuilds) -> Iterator[str]:
    """The undecided benchmarks whose interval alone would give a verdict."""
    of = found.times
    held = [
        name
        for name, judgement in of.judgements.items()
        if judgement.verdict == "undecided" and judgement.ci99
        if zone(*judgement.ci99, of.threshold(name)) in FLAGGED
    ]
    if held:
        yield (
            f"{few(held)}: undecided, although the interval lies beyond the threshold: among "
            f"{len(of.judgements)} benchmarks chance would move one as far too often."
        )


def _blind(found: ComparedBuilds) -> Iterator[str]:
    """What cannot be found on this machine, by its calibration."""
    newest = found.calibrated
    if newest is None:
        yield (
            "This machine is not calibrated: `rlox-opt calibrate` tells how small a change it can "
            "find."
        )
        return
    seen = {
        name: of["detectable"] - 1
        for name, of in newest["benchmarks"].items()
        if name in found.times.judgements
    }
    if seen:
        worst = max(seen, key=seen.__getitem__)
        usual = statistics.median(seen.values())
        yield (
            f"By the calibration of {newest['date'][:10]}, a change of a benchmark that is "
            "measured alone is found 95 times in 100 where "
            f"it exceeds the threshold by {100 * usual:.1f} % (median benchmark) or by "
            f"{100 * seen[worst]:.1f} % (the worst one, {worst})."
        )


def _sorted(judgements: Mapping[str, Judgement]) -> list[tuple[str, Judgement]]:
    return sorted(judgements.items(), key=lambda item: (_ORDER.index(item[1].verdict), item[0]))


def _verdict(judgement: Judgement, memory: bool) -> str:
    """The verdict, or the one to which an undecided benchmark leans."""
    zone = judgement.leans if judgement.verdict == "undecided" else judgement.verdict
    said = _OF_MEMORY.get(zone, zone) if memory else zone
    return f"rather {said}" if judgement.verdict == "undecided" else said


def _own(of: Comparison, name: str) -> str:
    """A benchmark's own threshold, if it has one."""
    return f"{100 * math.expm1(of.own[name]):g} %" if name in of.own else ""


def _interval(judgement: Judgement) -> str:
    return "–" if judgement.ci99 is None else "–".join(f"{end:.3f}" for end in judgement.ci99)


def _counted(found: ComparedBuilds, name: str, what: str) -> str:
    """The ratio of a count, head over base."""
    sides = [found.counts.get(side, {}).get(name) for side in ("base", "head")]
    if sides[0] is None or sides[1] is None:
        return ""
    base, head = sides[0][what], sides[1][what]  # type: ignore[literal-required]
    if base == head:
        return "="
    return units.factor(head / base) if base else f"0 → {head:g}"


def show_calibration(found: Mapping[str, Any], path: Path) -> None:
    """Print a calibration."""
    to = console()
    rows = [
        (
            name,
            units.percent(of["sd"]),
            units.percent(of["alarms"]),
            f"+{units.percent(of['detectable'] - 1)}",
        )
        for name, of in sorted(found["benchmarks"].items(), key=lambda of: of[1]["detectable"])
    ]
    headings = ("benchmark", "sd of a restart", "false alarms", "found 95 times in 100")
    to.print(Grid(headings, rows))
    to.print()
    to.print(Told(f"Of runs drawn from {found['restarts']} restarts of HEAD against itself:"))
    for threshold, of in found["thresholds"].items():
        to.print(
            Told(
                f"at a threshold of {threshold} %, {units.percent(of['cell_alarms'])} of verdicts "
                f"are false alarms, and {units.percent(of['run_alarms'])} of runs have one."
            )
        )
    text = (
        "The last column is the smallest change, above the threshold, that `diff` finds 95 times "
        "in 100."
    )
    to.print(Told(text))
    for line in calibration.advice():
        to.print(Told(f"This machine: {line}"))
    to.print(Told(str(path)))
