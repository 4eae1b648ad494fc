"""Which benchmarks changed between two recordings, and why training did: the layer and the
function, from samples of training in either build. `why` explains changes of benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from rlox_opt.history import condensed
from rlox_opt.history.cause import Cause, cause
from rlox_opt.history.store import Cell
from rlox_opt.project import calibration
from rlox_opt.project.builds import Artefact
from rlox_opt.project.project import Project
from rlox_opt.sampling import brief
from rlox_opt.sampling.driver import Progress
from rlox_opt.sampling.functions import Text, own
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.workloads import reference

_LEAST_MOVE = 1.03


def moved(project: Project, now: Sequence[Cell], before: Sequence[Cell]) -> list[tuple[str, float]]:
    """The benchmarks whose time changed, with the ratio, the largest change first. Times are ratios
    to one control. The intervals must not overlap, and the change must exceed 3 % and what this
    machine's calibration can find. Twins are left out, since each is the other's control."""
    newest = calibration.newest(project.records)
    known = newest["benchmarks"] if newest else {}
    then = {cell.benchmark: cell for cell in before if cell.kind == "time"}
    moves = []
    for cell in now:
        old = then.get(cell.benchmark)
        if cell.kind != "time" or of_twins(project, cell.benchmark) or old is None:
            continue
        if not (cell.ratio and old.ratio and cell.ratio_ci99 and old.ratio_ci99):
            continue
        least = max(_LEAST_MOVE, known.get(cell.benchmark, {}).get("detectable", 1.0))
        apart = cell.ratio_ci99[0] > old.ratio_ci99[1] or cell.ratio_ci99[1] < old.ratio_ci99[0]
        ratio = cell.ratio / old.ratio
        if apart and max(ratio, 1 / ratio) > least:
            moves.append((cell.benchmark, ratio))
    return sorted(moves, key=lambda move: -abs(math.log(move[1])))


def of_twins(project: Project, benchmark: str) -> bool:
    """Whether the benchmark calls one of an optimisation's twins."""
    calls = project.settings.twins.benchmark
    return bool(calls) and benchmark.startswith(f"{calls}(")


def of_training(
    project: Project, before: Artefact, after: Artefact, algo: str, progress: Progress
) -> Cause:
    """The cause of a change of the default training of `rlox-opt profile`. If no function of the
    project's own is on the stack, the phase stands for it. Raises ChildError and ValueError as
    `brief` does."""
    spec, sampler = reference(project, algo), brief.tool()
    classifier = Classifier(project.settings.layers)
    profiles, seconds = [], [0.0, 0.0]
    for index, side in enumerate((before, after)):
        speed, samples = brief.profile(spec, side.folder, sampler, classifier, progress)
        seconds[index] += 1 / speed.steps_per_s
        text = sources(project, side.revision.commit)
        profiles.append(condensed.profile(samples, speed.self_seconds, text))
    for index, side in ((1, after), (0, before)):  # in reverse: a drift then affects both equally
        seconds[index] += 1 / brief.speed(spec, side.folder, progress).steps_per_s
    return cause(profiles[0], profiles[1], seconds[1] / seconds[0])


def sources(project: Project, commit: str) -> Text:
    """The project's own files in a commit, by path."""
    return own(project, partial(project.commits.text, commit))
