"""Records for tests of the verbs that read them: made-up figures in the form that `cmp` writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import toy_projects
from msgspec import structs

from rlox_opt.history.records import append
from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project

ELSEWHERE = {"cpu": "AMD EPYC 7B13", "cores": 4}

# Of P5: workload, n, ratio, interval, verdict.
P5: list[tuple[str, int, float, tuple[float, float], str]] = [
    ("sample_256", 1_000, 0.953, (0.941, 0.966), "slower"),
    ("sample_256", 10_000, 1.004, (0.991, 1.017), "same"),
    ("sample_256", 100_000, 1.62, (1.58, 1.67), "faster"),
    ("sample_256", 1_000_000, 5.31, (5.12, 5.58), "faster"),
    ("set_256", 1_000, 0.71, (0.69, 0.73), "slower"),
    ("set_256", 10_000, 0.68, (0.65, 0.71), "slower"),
    ("set_256", 100_000, 0.64, (0.55, 0.74), "slower"),
    ("set_256", 1_000_000, 0.97, (0.90, 1.05), "undecided"),
]


def card(id_: str, project: Project = toy_projects.PROJECT, **changes: Any) -> Card:
    """The card `id_` as it was before it was measured, with changes."""
    found = next(card for card in cards.load(project) if card.id == id_)
    unmeasured: dict[str, Any] = {"status": "candidate", "finding": "", "record": ""}
    return structs.replace(found, **unmeasured | changes)


def result(
    workload: str, size: dict[str, int], ratio: float, ci95: Sequence[float], verdict: str
) -> dict[str, Any]:
    """A result whose seconds agree with its ratio."""
    return {
        "workload": workload,
        "size": size,
        "ratio": ratio,
        "ci95": list(ci95),
        "verdict": verdict,
        "restarts": 10,
        "baseline_s": 2e-4 * ratio,
        "optimized_s": 2e-4,
        "instructions": {"baseline": int(1e6 * ratio), "optimized": 1_000_000},
        "allocations": {"baseline": 12, "optimized": 0},
        "aa": {"ratio": 1.001, "ci95": [0.998, 1.004]},
    }


def p5(folder: Path, date: str, machine: dict[str, Any] = ELSEWHERE, **more: Any) -> Path:
    """Write a record of P5 at every size."""
    results = [result(w, {"n": n}, *figures) for w, n, *figures in P5]
    record = {
        "schema": 1,
        "id": "P5",
        "date": date,
        "commit": "f956de01b1f6a2a4c0ae1fc0f9c7e2a0c9a5d3b1",
        "dirty": False,
        "machine": machine,
        "build": {"profile": "release", "features": [], "rustc": "1.95.0"},
        "seconds": 61.5,
        "complete": True,
        "results": results,
    }
    return append(record | more, folder)
