"""Families of histories: benchmarks that one machine measured commit by commit, one of which may
have a step. Only a detector that looks at several series together is scored on them.

A recorded family is drawn in blocks from the repository's own history, between two commits at which
nothing changed. So it has the noise of real recordings, with their outliers, their autocorrelation,
and what the benchmarks have in common. The other families consist of synthetic noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import product
from zlib import crc32

import numpy as np
from rlox_opt.history import store
from rlox_opt.history.series import of_store
from rlox_opt.history.store import Entry

from asv_bench.injected.journal import Step
from asv_bench.levels.detectors import Detector, Family, Series
from asv_bench.levels.scores import KEY, NEAR, Row, summed
from asv_bench.levels.synthetic import NOISES, Generator
from asv_bench.project import PROJECT

CHUNK = 10  # families in one step of the work
COMMITS = 44  # as in the history
AT = 34  # the index of the step: ten commits before the end
STEPPED = "data_plane.Prioritized.time_sample_256"  # of a recorded family
_MACHINE = "amd-epyc-2c"
_BEFORE = datetime(2026, 11, 23, tzinfo=UTC)  # later recordings must not change scores
# The first and the last of the commits whose readings are drawn. Before and after them, measured
# code changed.
_QUIET = ("1203945e", "85a7617b")
_BLOCK = 5  # readings that stay together
_SERIES = 31  # of a synthetic family

Shape = dict[int, float]  # log-ratios of the stepped series, by the commit at which each begins


def recorded(rng: Generator) -> Family:
    """Blocks of the recorded readings, taken at the same commits for all benchmarks."""
    quiet = _quiet()
    length = len(quiet[STEPPED].logs)
    blocks = rng.integers(0, length - _BLOCK + 1, -(-COMMITS // _BLOCK))
    at = (blocks[:, None] + np.arange(_BLOCK)).ravel()[:COMMITS]
    return {name: Series(of.logs[at], of.errors[at]) for name, of in quiet.items()}


@cache
def _quiet() -> Family:
    recorded = (entry for _, entry in store.entries(PROJECT.history))
    there = [entry for entry in recorded if entry.slug == _MACHINE and entry.date < _BEFORE]
    drawn = [*_between(sorted(store.newest(there).values(), key=lambda of: of.committed))]
    series = [one for one in of_store(drawn) if one.kind == "time"]
    return {
        one.benchmark: Series(
            np.log([point.level or 1.0 for point in one.points]),
            np.array([point.error or 0.0 for point in one.points]),
        )
        for one in series
        if all(point.level for point in one.points) and len(one.points) == len(drawn)
    }


def _between(entries: Sequence[Entry]) -> Iterator[Entry]:
    inside = False
    for entry in entries:
        inside = inside or entry.commit.startswith(_QUIET[0])
        if inside:
            yield entry
        if entry.commit.startswith(_QUIET[1]):
            return


def made_of(*noises: str) -> Callable[[Generator], Family]:
    """A family whose series have these noises in turn; only the first series has the first one."""
    first, *others = noises

    def family(rng: Generator) -> Family:
        names = [first, *(others[n % len(others)] for n in range(_SERIES - 1))]
        logs = [NOISES[name](rng)[-COMMITS:] for name in names]
        return {f"{n}": Series(of, np.zeros(COMMITS)) for n, of in enumerate(logs)}

    return family


@dataclass(frozen=True)
class Kind:
    """How a family is drawn; which of its series has the step, and which sizes the step has."""

    draw: Callable[[Generator], Family]
    stepped: str
    shapes: dict[str, Shape]


_SMALL: dict[str, Shape] = {"flat": {}, "+3 % late": {AT: 0.03}, "+5 % late": {AT: 0.05}}
KINDS = {
    "recorded": Kind(
        recorded,
        STEPPED,
        {
            "flat": {},
            "+8 % late": {AT: np.log(1.08)},
            "+10 % late": {AT: np.log(1.10)},
            "+14 % late": {AT: np.log(1.14)},
            "+20 % late": {AT: np.log(1.20)},
            "+8 % and +10 % late": {AT: np.log(1.08), AT + 5: np.log(1.10)},
        },
    ),
    "family of gauss": Kind(made_of("gauss", "gauss"), "0", _SMALL),
    "family of ar1_strong": Kind(made_of("ar1_strong", "ar1_strong"), "0", _SMALL),
    "ar1_strong among gauss": Kind(made_of("ar1_strong", "gauss"), "0", _SMALL),
    "family of all": Kind(
        made_of("gauss", *(name for name in NOISES if name != "machines")), "0", _SMALL
    ),
}
_SHAPES = [*dict.fromkeys(shape for kind in KINDS.values() for shape in kind.shapes)]
HINTS = {"": (), ", counted": (AT,)}  # the right indices from the stepped series' counts


def steps(
    detectors: Sequence[Detector], kinds: Sequence[str], counts: dict[str, int], first: int
) -> Iterator[Step]:
    """All that is to be scored, as `scores.steps`."""
    for name, shape, hint, detector in product(kinds, _SHAPES, HINTS, detectors):
        if shape in KINDS[name].shapes and detector.family is not None:
            of = counts["change" if KINDS[name].shapes[shape] else "flat"]
            for chunk in range(of // CHUNK):
                yield _step(detector, name, shape, hint, first, chunk)


def _step(detector: Detector, name: str, shape: str, hint: str, first: int, chunk: int) -> Step:
    of = ("whole", name, shape + hint, detector.name, detector.version, first, chunk)
    key = dict(zip(KEY, of, strict=True))

    def does() -> Row:
        numbers = range(first + chunk * CHUNK, first + (chunk + 1) * CHUNK)
        told = [look(detector, name, shape, hint, number) for number in numbers]
        return {"histories": len(told), **summed(told)}

    return Step(detector.name, f"{detector.name}: {name}, {shape}{hint}, {chunk + 1}", key, does)


def look(detector: Detector, name: str, shape: str, hint: str, number: int) -> Row:
    """Score one family: was the first change of the stepped series located, and was another change
    reported in any series?

    With counts, the stepped series has its step as a suspected index, and each series has two
    suspected indices without a change, drawn at random."""
    kind = KINDS[name]
    rng = np.random.default_rng([crc32(name.encode()), number])
    family = kind.draw(rng)
    jumps = kind.shapes[shape]
    stepped = family[kind.stepped]
    for at, jump in jumps.items():
        stepped.logs[at:] += jump
    suspected = {
        of: [*rng.integers(5, COMMITS - 5, 2), *(HINTS[hint] if of == kind.stepped else ())]
        for of in family
    }
    assert detector.family is not None
    told_of = detector.family(family, suspected if hint else {})
    near = [
        [abs(at - true) <= NEAR and log * jump > 0 for at, log in told_of[kind.stepped]]
        for true, jump in jumps.items()
    ]
    others = sum(len(told) for of, told in told_of.items() if of != kind.stepped)
    right = sum(any(of) for of in zip(*near, strict=True))
    return {
        "located": bool(jumps) and any(near[0]),
        "false": others + len(told_of[kind.stepped]) - right > 0,
    }
