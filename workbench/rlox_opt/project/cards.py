"""The cards of the planned optimisations, read from `optimizations/*.toml`.

A card says what one optimisation claims, what we predict, the seam it varies, the sizes it is
measured at, its *spots* (which samples of a training profile it could remove) and, once measured,
what was found. Every verb of the workbench that names an optimisation takes it from here.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from rlox_opt.project.project import Project
from rlox_opt.system.files import NotReadError
from rlox_opt.system.schema import Id, NotNegative, Positive, read


class Seam(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The one place that an optimisation varies: its `kind`, and its address in the tree. A `build`
    is a pair of cargo's `profiles`, the baseline's and the optimised form's."""

    kind: Literal["function", "type", "build", "python", "setting"]
    address: str
    profiles: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if (self.kind == "build") != (self.profiles is not None):
            raise ValueError("`profiles` is of a seam whose `kind` is build, and is needed there")


class Prediction(Struct, frozen=True, forbid_unknown_fields=True):
    """The expected ratio of baseline time to optimised time at one size of one workload, and `why`.

    `rlox-opt predict` writes it before the optimised form is written.
    """

    workload: str
    size: Mapping[str, int]
    ratio: tuple[Positive, Positive]
    why: str

    def __post_init__(self) -> None:
        if self.ratio[0] > self.ratio[1]:
            raise ValueError(f"`ratio` is {[*self.ratio]}; it takes 0 < low <= high")


class Spot(Struct, frozen=True, forbid_unknown_fields=True):
    """Samples that an optimisation could remove, on runs of `algos` under `conditions`.

    A sample lies on the spot if its phase is one of `phases` or below one, its layer one of
    `layers`, and one of its frames' names matches one of `frames` (regular expressions). What is
    left empty does not restrict.
    """

    algos: tuple[str, ...]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.frames:
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"`frames` holds {pattern!r}: {error}") from error

    def applies(self, algo: str, settings: Mapping[str, Any]) -> bool:
        """Whether a run of `algo` with `settings` (`collector`, `prioritized`, …) has this spot."""
        return algo in self.algos and all(
            settings.get(key) == value for key, value in self.conditions.items()
        )

    def holds(self, phase: str, layer: str, functions: Sequence[str]) -> bool:
        """Whether a sample of that phase, layer and stack of functions lies on the spot."""
        if self.layers and layer not in self.layers:
            return False
        if self.phases and not any(phase == p or phase.startswith(p + "/") for p in self.phases):
            return False
        names = re.compile("|".join(self.frames))  # `re` keeps it; of no pattern it finds anything
        return not self.frames or any(names.search(_bare(name)) for name in functions)


def _bare(function: str) -> str:
    """A function's path without its type parameters, which name code that it may never call."""
    return function.partition("<")[0] or function


class Card(Struct, frozen=True, forbid_unknown_fields=True):
    """One optimisation. `layer` is the part of the stack it changes.

    `tolerance` is the largest difference between its twins, relative above 1 and absolute below; 0
    means equal to the bit. In the data plane it is that of float64, and float32 may differ by as
    many units in the last place. `sizes` are those of its pair's workloads. `finding` says in prose
    what was measured in `record`, a file of `optimizations/record/` named from the repository's
    root.
    """

    id: Id
    title: str
    layer: Literal["rust", "boundary", "python", "torch"]
    feature: str
    status: Literal["candidate", "accepted", "graduated", "rejected"]
    claim: str
    seam: Seam
    needs: tuple[str, ...]
    also_measured: tuple[str, ...]
    tolerance: NotNegative = 0.0
    sizes: Mapping[str, Sequence[Mapping[str, int]]] = field(default_factory=dict)
    prediction: Prediction | None = None
    finding: str = ""
    record: str = ""
    note: str = ""
    spot: tuple[Spot, ...] = ()

    def __post_init__(self) -> None:
        for name in ("prediction", "finding", "record") if self.status != "candidate" else ():
            if not getattr(self, name):
                raise ValueError(f"`{name}` is missing, and {self.status} needs one")

    @property
    def in_build(self) -> bool:
        """Whether its twins are chosen by `feature` when the extension is built; otherwise the
        running program chooses."""
        return self.seam.kind in ("function", "type", "build")

    @property
    def stem(self) -> str:
        """How the names of its files usually begin: "p05"."""
        return f"{self.id[0].lower()}{int(self.id[1:]):02}"


def path_of(project: Project, card: Card) -> Path:
    """The file of a card, whatever its name is."""
    usual = project.cards.glob(f"{card.stem}_*.toml")  # first, so that one file is read
    return next(p for p in (*usual, *project.cards.glob("*.toml")) if parse(p).id == card.id)


def load(project: Project) -> list[Card]:
    """All cards of a project, those of P before those of R, by number; none without a folder.

    Raises `NotReadError` for a card that breaks the schema, and for a `needs` or an `id` that
    contradicts other cards.
    """
    folder = project.cards
    cards = [parse(path) for path in sorted(folder.glob("*.toml"))]
    known = {card.id for card in cards}
    if len(known) < len(cards):
        raise NotReadError(folder, "two cards share an `id`; give each its own")
    paired = project.installed.paired() if cards and project.installed.has_pairs() else None
    for card in cards:
        for other in card.needs:
            if other not in known:
                raise NotReadError(folder, f"{card.id} needs {other!r}, which has no card")
        records = f"{folder.name}/record/"
        if card.record and not card.record.startswith(records):
            raise NotReadError(
                folder, f"{card.id} has record {card.record!r}; it lies under {records}"
            )
        in_rust = card.seam.kind in ("function", "type")
        decided = card.status != "candidate"
        if in_rust and decided and paired is not None and card.id not in paired:
            raise NotReadError(folder, f"{card.id} is {card.status}, but has no pair to show it")
    return sorted(cards, key=lambda card: (card.id[0], int(card.id[1:])))


def parse(path: Path) -> Card:
    """The card in `path`. Raises `NotReadError`, naming file and key, when it breaks the schema."""
    return read(path, Card)


def benchmark(calls: str, id_: str, workload: str, size: Mapping[str, int], twin: str) -> str:
    """The name of the suite's benchmark that `calls` a twin: "baseline" or "optimized"."""
    of = ",".join(f"{name}={number}" for name, number in sorted(size.items()))
    return f"{calls}('{id_} {workload} {of}', '{twin}')"


def benchmarks_of_twins(project: Project) -> Iterator[str]:
    """The names of all such benchmarks that the suite may have, by the sizes that the cards give.
    A card that cannot be read, such as one that is being written, gives none."""
    calls = project.settings.twins.benchmark
    for path in project.cards.glob("*.toml"):
        with contextlib.suppress(NotReadError):
            card = parse(path)
            for workload, sizes in card.sizes.items():
                for size, twin in itertools.product(sizes, ("baseline", "optimized")):
                    yield benchmark(calls, card.id, workload, size, twin)
