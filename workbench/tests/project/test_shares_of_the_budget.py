"""The budget of a comparison bounds all of its measuring, and each part has its share."""

import argparse
import contextlib
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from rlox_opt.harness.packages import Reading
from rlox_opt.project import side_by_side

NAMES = {"time": ["time_a", "time_b"], "memory": ["mem_a", "mem_b", "mem_c", "mem_d"]}
BUDGET_S = 100.0


class Packages:
    """Two sides whose benchmarks take a second each, and scatter too much for any verdict."""

    suite = SimpleNamespace(fresh=False)
    beginning = ""

    def __init__(self) -> None:
        self.now = 0.0
        self._rng = random.Random(0)

    def names(self, kind: str) -> dict[str, list[str]]:
        return {name: ["base", "head"] for name in NAMES.get(kind, [])}

    def listed(self) -> dict[str, Any]:
        return {side: SimpleNamespace(broken={}) for side in ("base", "head")}

    def contests(self, names: Sequence[str], seed: int) -> Iterator[tuple[str, Reading]]:
        for name in names:
            self.now += 1.0
            yield name, Reading(self._rng.gauss(0, 0.5), self._rng.gauss(0, 0.5), 1.0, 1.0)

    tracked = contests

    def peaks(self, names: Sequence[str], seed: int) -> Iterator[tuple[str, Reading]]:
        assert not names
        return iter(())

    def told(self) -> dict[str, str]:
        return {}


def test_times_leave_memory_and_counts_their_shares_and_nothing_begins_after_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, counting = Packages(), []
    count_all = Mock(side_effect=lambda *of: counting.append((packages.now, of[3])) or [])
    monkeypatch.setattr(time, "monotonic", lambda: packages.now)
    monkeypatch.setattr(side_by_side.callgrind, "available", lambda: True)
    monkeypatch.setattr(side_by_side.callgrind, "count_all", count_all)
    monkeypatch.setattr(
        side_by_side, "side_by_side", lambda *sides: contextlib.nullcontext(packages)
    )
    project: Any = SimpleNamespace(settings=SimpleNamespace(thresholds={}), records=tmp_path)
    asked = argparse.Namespace(
        threshold=1.0, bench=re.compile(""), budget=BUDGET_S, restarts=40, no_counts=False,
        no_coverage=True,
    )  # fmt: skip
    compared = side_by_side.measured(project, Mock(), Mock(), asked, Mock())
    assert compared.complete
    timed, weighed = (
        sum(map(len, of.readings.values())) for of in (compared.times, compared.memory)
    )
    assert 50 <= timed <= 70
    assert 15 <= weighed <= 85 - timed  # what times left over is memory's too
    assert counting == [(float(timed + weighed), BUDGET_S)]
