"""The claims of the texts: each figure is bound to a record (`claims.toml`), so that it cannot
become outdated unnoticed.

`check` compares texts with records, and finds figures that are not bound. `stale` says why the
record of a claim may no longer be valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from rlox_opt.history import code_changes, figures
from rlox_opt.history.figures import FigureError, figure, value
from rlox_opt.history.passages import Number, Passage, passages
from rlox_opt.system import git
from rlox_opt.system.files import NotReadError, read_text
from rlox_opt.system.machine import slug
from rlox_opt.system.output import few
from rlox_opt.system.schema import read

FEW = 5  # rounds; with fewer, an interval is too uncertain
_NAMED = 3  # changed definitions that are named
_HOLE = re.compile(r"\{(\w+)\}")
_LINK = re.compile(r"(?<=\])\([^)]*\)")
_FIGURE = r"[-−+]?\d+(?:,\d{3})*(?:\.\d+)?"


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """A record that claims cite. `rounds` is an expression (`figures`) for the number of rounds in
    it. `measures` are the paths of the code whose change makes it outdated; what lies under one
    that begins with "!" is left out."""

    path: str
    rounds: str
    measures: tuple[str, ...]

    @property
    def past(self) -> bool:
        """Whether the text tells how it was then, so that no change makes the record outdated."""
        return not self.measures


class Claim(Struct, forbid_unknown_fields=True):
    """`says` is the text, with the name of a figure in braces in place of the figure. `record` is
    the name of its source."""

    text: str
    says: str
    record: str
    figures: dict[str, str]


class Book(Struct, forbid_unknown_fields=True):
    """claims.toml: the texts that it covers, and for each text the numbers that were not
    measured."""

    texts: tuple[str, ...]
    record: dict[str, Source]
    claim: tuple[Claim, ...] = ()
    plain: dict[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        for number, claim in enumerate(self.claim):
            if claim.record not in self.record:
                known = ", ".join(self.record)
                what = f"`claim[{number}].record` is {claim.record!r}"
                raise ValueError(f"{what}; it may be one of {known}")


@dataclass
class CheckedClaim:
    """A claim, its line (0: not found), what its record says, and what is wrong: `wrong` with the
    text, `stale` with the record."""

    claim: Claim
    source: Source
    line: int
    figures: dict[str, str]
    commit: str
    machine: str
    date: str
    wrong: list[str]
    stale: list[str]


def check(path: Path) -> tuple[list[CheckedClaim], list[str]]:
    """Each claim of a `Book` with what is wrong with it; then the faults of the texts themselves,
    such as figures that are not bound and exempted numbers that are nowhere in the text, and the
    records that no claim cites.

    Raises:
        NotReadError: the file cannot be read, or a text or record is missing.
    """
    book, root = read(path, Book), path.parent
    known: dict[str, tuple[Mapping[str, Any], list[str]]] = {}  # records, and why they are outdated
    checked: list[CheckedClaim] = []
    loose: list[str] = []
    for text in book.texts:
        parts = passages(read_text(root / text))
        bound: dict[Passage, set[int]] = {}
        for claim in book.claim:
            if claim.text != text:
                continue
            source = book.record[claim.record]
            if claim.record not in known:
                try:
                    told = _with_commit(figures.read(root / source.path))
                except FigureError as error:
                    raise NotReadError(root / source.path, str(error)) from error
                known[claim.record] = told, [*_stale(root, source, told)]
            checked.append(_compare(claim, source, *known[claim.record], parts, bound))
        loose += _loose(text, parts, bound, book.plain.get(text, ()))
    others = {claim.text for claim in book.claim} | {*book.plain}
    loose += [f"{text}: is none of the texts" for text in sorted(others.difference(book.texts))]
    uncited = {*book.record} - {claim.record for claim in book.claim}
    loose += [f"[record.{name}]: no claim cites it; remove it" for name in sorted(uncited)]
    return checked, loose


def _compare(
    claim: Claim,
    source: Source,
    record: Mapping[str, Any],
    stale: list[str],
    parts: Sequence[Passage],
    bound: dict[Passage, set[int]],
) -> CheckedClaim:
    """The claim with its place. The figures there are added to `bound`."""
    machine = record.get("machine") or {}
    one = CheckedClaim(
        claim,
        source,
        0,
        {},
        str(record.get("commit") or ""),
        f"{machine['cpu']}, {machine['cores']} cores" if machine else "",
        str(record.get("date") or "")[:10],
        [],
        stale,
    )
    for name, asked in claim.figures.items():
        try:
            one.figures[name] = figure(record, asked)
        except FigureError as error:
            one.wrong.append(f"{name}: {error}")
    holes = _HOLE.findall(claim.says)
    if sorted(holes) != sorted(claim.figures):
        one.wrong.append(f"says {holes}, has figures {sorted(claim.figures)}; give each one place")
        return one
    matches = [(part, m) for part in parts for m in _pattern(claim.says).finditer(part.text)]
    if len(matches) != 1:
        how = "twice" if matches else "nowhere"
        one.wrong.append(f"stands {how}: {_rendered(claim, one.figures)}")
        return one
    (part, match), *_ = matches
    one.line = part.line
    bound.setdefault(part, set()).update(i for name in holes for i in range(*match.span(name)))
    for name, expected in one.figures.items():
        if match[name] != expected:
            one.wrong.append(f"{name}: the text says {match[name]}, the record {expected}")
    one.wrong += _missing(part, record)
    return one


def _missing(part: Passage, record: Mapping[str, Any]) -> Iterator[str]:
    """Machine and date that are missing beside a figure. They must stand in the passage, or for a
    table in its section; the path of a record, which contains both, is enough."""
    beside = _LINK.sub("", part.section if part.row else part.text)
    machine = record.get("machine") or {"cpu": "(unknown)", "cores": 0}
    *words, _ = slug(machine).split("-")  # the same words for "AMD EPYC" and "amd-epyc-2c"
    if not all(word in beside.lower() for word in words):
        yield f"the machine of its record, {machine['cpu']}, does not stand beside it"
    if (date := str(record.get("date"))[:10]) not in beside:
        yield f"the date of its record, {date}, does not stand beside it"


def _pattern(says: str) -> re.Pattern[str]:
    pieces = _HOLE.split(" ".join(says.split()))
    return re.compile(
        "".join(
            f"(?P<{piece}>{_FIGURE})" if at % 2 else re.escape(piece)
            for at, piece in enumerate(pieces)
        )
    )


def _rendered(claim: Claim, figures: Mapping[str, str]) -> str:
    return _HOLE.sub(lambda hole: figures.get(hole[1], hole[0]), claim.says)


def _loose(
    text: str, parts: Sequence[Passage], bound: Mapping[Passage, set[int]], plain: Sequence[str]
) -> Iterator[str]:
    """Figures that are not bound: every other number in a passage with a claim, and elsewhere
    numbers that look like measurements."""
    for part in parts:
        known = set(bound.get(part, ()))
        for phrase in plain:
            for match in re.finditer(re.escape(phrase), part.text):
                known.update(range(*match.span()))
        for number in part.numbers():
            if (number.measured or part in bound) and number.start not in known:
                yield (
                    f"{text}:{part.line}: {number.text} in {_around(part, number)!r} has no claim; "
                    "bind it, or name it under [plain] if it was not measured"
                )
    every = " \n ".join(part.text for part in parts)
    for phrase in plain:
        if phrase not in every:
            yield f"{text}: [plain] {phrase!r} stands nowhere; remove it"


def _around(part: Passage, number: Number) -> str:
    return part.text[max(0, number.start - 25) : number.end + 25]


def _with_commit(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record. One of `diff` names its commit `head`; of a working tree `diff` makes one."""
    if "commit" in record or "head" not in record:
        return record
    return {**record, "commit": record["head"], "dirty": False}


def _stale(root: Path, source: Source, record: Mapping[str, Any]) -> Iterator[str]:
    """Why the record may no longer be valid."""
    if record.get("dirty"):
        yield "of a tree with uncommitted changes"
    elif record.get("dirty") is None:
        yield "does not say whether its tree had uncommitted changes"
    try:
        if (rounds := value(record, source.rounds)) < FEW:
            yield f"of {rounds:.0f} {'rounds' if rounds > 1 else 'round'}, fewer than {FEW}"
    except FigureError as error:
        yield f"rounds: {error}"
    for path in source.measures:
        if not (root / path.removeprefix("!")).exists():
            yield f"measures {path}, which is not there"
    if source.past:
        return
    since = record.get("commit")
    try:
        repository = git.of(root)
        changes = code_changes.changed(repository, since, source.measures) if since else None
    except git.GitError as error:
        yield f"not known to be of this code: {error}"
        return
    if changes is None:
        yield f"of a commit that is not here ({since or 'none'})"
    elif changes:
        yield f"older than a change of {few(changes, _NAMED)}"
