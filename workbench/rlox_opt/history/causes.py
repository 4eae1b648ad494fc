"""Why a benchmark became slower between two builds: the layer and the function, from samples of its
calls in either.

perf says which layer, and which function of Rust; of Python it knows no functions, and py-spy names
them. Without perf, py-spy says all of it.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from rlox_opt.harness.packages import SIDES
from rlox_opt.harness.restarts import Worker
from rlox_opt.history import condensed
from rlox_opt.history.cause import Cause, cause
from rlox_opt.history.store import Cell, Profile
from rlox_opt.project import calibration
from rlox_opt.project.builds import Artefact
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import side_by_side
from rlox_opt.sampling import brief, perf, pyspy
from rlox_opt.sampling.driver import Progress
from rlox_opt.sampling.functions import Text, own
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.samples import MAIN_THREAD, Samples
from rlox_opt.sampling.workloads import reference
from rlox_opt.system.process import end
from rlox_opt.system.scratch import scratch

# Which build is looked at, 0 before and 1 after, and for how many seconds each time. py-spy begins
# by reading symbols, at a price of seconds.
_WINDOWS = {
    "perf": ((0, 1, 1, 0), 2.0),
    "py-spy": ((0, 1), 12.0),
    "python": ((0, 1, 1, 0), 2.0),
}
_PYTHON_RATE = 200  # Hz; without native stacks py-spy keeps that pace
_BURST_S = 0.1  # of calls, between which the process is asked for more
_LEAST_MOVE = 1.03


def moved(project: Project, now: Sequence[Cell], before: Sequence[Cell]) -> list[tuple[str, float]]:
    """The benchmarks whose time, by the ratios to one control, is another than before, and by what
    ratio, the largest move first: with intervals apart, and beyond 3 % and what this machine's
    calibration finds. Of the twins of an optimisation, whose control is each other, nothing."""
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


def of_benchmark(
    project: Project, before: Artefact, after: Artefact, benchmark: str, ratio: float
) -> Cause:
    """The cause of a `ratio` = time after / time before.

    Raises:
        ContestError: the benchmark fails in one of the builds.
        ValueError: nothing can sample here, or the sampler left nothing.
    """
    sampler = brief.tool()
    likely = _between(project, before, after, benchmark, ratio, sampler)
    if sampler == "perf" and not _ours(likely) and pyspy.unavailable() is None:
        named = _between(project, before, after, benchmark, ratio, "python")
        likely = dataclasses.replace(
            likely, function=named.function, function_share=named.function_share
        )
    return likely


def of_training(
    project: Project, before: Artefact, after: Artefact, algo: str, progress: Progress
) -> Cause:
    """The cause of a change of the training that `rlox-opt profile` takes unasked; without a
    function of ours on the stack, its phase. Raises ChildError and ValueError as `brief` does."""
    spec, sampler = reference(project, algo), brief.tool()
    classifier = Classifier(project.settings.layers)
    profiles, seconds = [], [0.0, 0.0]
    for index, side in enumerate((before, after)):
        speed, samples = brief.profile(spec, side.folder, sampler, classifier, progress)
        seconds[index] += 1 / speed.steps_per_s
        text = sources(project, side.revision.commit)
        profiles.append(condensed.profile(samples, speed.self_seconds, text))
    for index, side in ((1, after), (0, before)):  # and back: a drift hits both alike
        seconds[index] += 1 / brief.speed(spec, side.folder, progress).steps_per_s
    return cause(profiles[0], profiles[1], seconds[1] / seconds[0])


def _between(
    project: Project, before: Artefact, after: Artefact, benchmark: str, ratio: float, sampler: str
) -> Cause:
    seen = _seen(project, before, after, benchmark, sampler)
    then, now = (_profile(project, *of) for of in zip((before, after), seen, strict=True))
    return cause(then, now, ratio)


def _profile(project: Project, built: Artefact, samples: Samples) -> Profile:
    """Of the samples of a build, which are all there is: no clock of the program's own says how
    long a phase takes."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for sample in samples.samples:
        if sample.thread == MAIN_THREAD:
            seconds[sample.phase] += sample.weight
    return condensed.profile(samples, seconds, sources(project, built.revision.commit))


def of_calls(project: Project, built: Artefact, benchmark: str) -> Profile:
    """Where the calls of a benchmark spend their time. Raises as `of_benchmark` does."""
    sampler = brief.tool()
    first, second = _seen(project, built, built, benchmark, sampler)
    first.samples += second.samples
    return _profile(project, built, first)


def _ours(of: Cause) -> bool:
    return of.function is not None and of.function.partition(":")[0].endswith((".rs", ".py"))


def sources(project: Project, commit: str) -> Text:
    """The files of a commit that are the project's own, by path."""
    return own(project, partial(project.commits.text, commit))


def _seen(
    project: Project, before: Artefact, after: Artefact, benchmark: str, sampler: str
) -> list[Samples]:
    """Samples of the calls in either build, at nearly the same time."""
    order, seconds = _WINDOWS[sampler]
    classifier = Classifier(project.settings.layers)
    seen = [Samples(sampler), Samples(sampler)]
    with (
        side_by_side(project, before, after, again=False) as packages,
        packages.processes(SIDES[:2], random.Random()) as asks,
    ):
        for side in order:
            ask, number = asks[SIDES[side]]
            packages.prepare(ask, SIDES[side], benchmark, number=number)
            seen[side].samples += _window(ask, sampler, classifier, seconds).samples
    return seen


def _window(ask: Worker, sampler: str, classifier: Classifier, seconds: float) -> Samples:
    """What the sampler sees of the calls of the side prepared last."""
    start, calls = time.monotonic(), 1
    while time.monotonic() - start < _BURST_S:  # and so it is warm
        start, calls = time.monotonic(), 2 * calls
        ask("call", calls)
    with scratch() as folder:
        if sampler == "perf":
            watching = perf.attach(ask.pid, seconds, folder)
        elif sampler == "py-spy":
            watching = pyspy.attach(ask.pid, seconds, folder)
        else:
            watching = pyspy.attach(ask.pid, seconds, folder, _PYTHON_RATE, native=False)
        try:
            while watching.poll() is None:
                ask("call", calls)
        finally:
            end(watching)
        if sampler == "perf":
            return perf.load(folder, classifier)
        rate = _PYTHON_RATE if sampler == "python" else pyspy.RATE
        return pyspy.load(folder, classifier, rate=rate)
