"""The ledger: for each optimisation, the prediction and the result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlox_opt.history import records
from rlox_opt.history.records import Record, Result
from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.system.schema import Positive, read


@dataclass
class _Gain:
    ratio: Positive
    verdict: str
    ci95: tuple[Positive, Positive] | None = None


@dataclass
class _Bound:
    bound: Positive


@dataclass
class _Step:
    id: str
    alone: _Gain
    with_the_others: _Gain
    bound: _Bound | None = None


@dataclass
class Ladder:
    """The parts of a ladder's record that are read."""

    steps: tuple[_Step, ...]


@dataclass(frozen=True)
class Line:
    """One optimisation. `realised` is the record and the result that check its prediction.
    `ladders` is its gain in training: {name of the run: the step of the newest ladder}."""

    card: Card
    records: Sequence[Record]
    realised: tuple[Record, Result] | None
    ladders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def outcome(self) -> str | None:
        """Where the result lies: "inside" the predicted interval, "below" or "above" it."""
        if self.realised is None or self.card.prediction is None:
            return None
        low, high = self.card.prediction.ratio
        ratio = self.realised[1].ratio
        return "below" if ratio < low else "above" if ratio > high else "inside"

    def names(self, benchmark: str) -> bool:
        """Whether a benchmark of the history belongs to this optimisation's pair."""
        return re.search(rf"\(.*\b{self.card.id}\b", benchmark) is not None


def lines(project: Project) -> list[Line]:
    """Every card with its records. Raises NotReadError."""
    of = project.comparisons
    climbed = {algo: _newest_ladder(algo, of) for algo in workloads.names(project)}
    out = []
    for card in cards.load(project):
        own = records.records(card.id, of)
        ladders = {
            algo: step
            for algo, ladder in climbed.items()
            for step in ladder.get("steps", ())
            if step["id"] == card.id
        }
        out.append(Line(card, own, records.realised(card, own, of), ladders))
    return out


def _newest_ladder(algo: str, folder: Path) -> dict[str, Any]:
    own = re.compile(rf".*_ladder_{re.escape(algo)}(-\d+)?")  # not of another that begins so
    ladders = (path for path in folder.glob("*/*_ladder_*.json") if own.fullmatch(path.stem))
    newest = max(ladders, key=lambda path: path.name, default=None)
    if newest is None:
        return {}
    read(newest, Ladder)
    return read(newest, dict[str, Any])
