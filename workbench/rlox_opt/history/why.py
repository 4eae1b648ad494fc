"""Where the calls of a benchmark spend their time, and why they take longer or shorter in head than
in base: which parts grew, from samples that are taken of both sides in turn.

Two samplers are used, one after the other. One takes native stacks (perf, or py-spy if perf is not
available), which show whose code grew and which native function. The other is py-spy without native
stacks, which sees Python functions and lines at hardly any cost. Its stacks show the functions that
the change touches and that grew, even if the time is spent in what they call. Each result is a part
of the whole change with its interval; a part whose interval reaches 0 is not named.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import lru_cache, partial

from rlox_opt.harness.packages import SIDES, Packages
from rlox_opt.harness.restarts import ContestError
from rlox_opt.history import watched
from rlox_opt.history.cause import Cause
from rlox_opt.history.grown_parts import Parts
from rlox_opt.project import changed, releases
from rlox_opt.project.builders import criterion
from rlox_opt.project.builds import Artefact
from rlox_opt.project.changed import Changed
from rlox_opt.project.explained import BENCHMARK_S, Why
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import side_by_side
from rlox_opt.sampling.functions import Text, own
from rlox_opt.sampling.whose import Whose
from rlox_opt.system.usage import UsageError

CALLS_S = 15.0  # when one build alone is examined
_WINDOW_S = {"perf": 1.0, "py-spy": 5.0, watched.PYTHON: 2.0}  # of one side, each time
_COMPILED_SUITES = ("rlox_opt_criterion_side.py",)


def of_benchmark(
    project: Project,
    base: Artefact,
    head: Artefact,
    benchmark: str,
    ratio: float,
    seconds: float = BENCHMARK_S,
) -> Why:
    """Examine for so many seconds a benchmark whose time changed by `ratio`. Failures are listed in
    `missing`. Raises ContestError if the sides cannot be started."""
    return _looked(project, (base, head), benchmark, ratio, seconds)[0]


def of_calls(project: Project, built: Artefact, benchmark: str) -> Why:
    """Where the calls of a benchmark of one build spend their time, as parts of the whole. Raises
    as `of_benchmark` does."""
    return _looked(project, (built, built), benchmark, None, CALLS_S)[0]


def with_cause(
    project: Project, base: Artefact, head: Artefact, benchmark: str, ratio: float
) -> tuple[Why, Cause]:
    """As `of_benchmark`, with the same by layers alone for the history. Raises ContestError, and
    ValueError with the reason if there are no samples."""
    found, parts = _looked(project, (base, head), benchmark, ratio, BENCHMARK_S)
    try:
        return found, parts.cause()
    except ValueError as error:
        raise ValueError("; ".join([f"{error}", *found.missing])) from None


def _looked(
    project: Project,
    builds: tuple[Artefact, Artefact],
    benchmark: str,
    ratio: float | None,
    seconds: float,
) -> tuple[Why, Parts]:
    """The result, and the parts behind it. Without a `ratio` head alone is examined."""
    start = time.monotonic()
    found = Why(benchmark, ratio)
    with side_by_side(project, *builds, again=False) as packages:
        packages.beginning = benchmark
        base, head = (packages.sides[side].folder for side in SIDES[:2])
        layers, suites = project.settings.layers, [packages.suite.folder]
        if packages.suite.program in _COMPILED_SUITES:
            sources = [criterion.compiled_in(of) for of in builds]
            whose = Whose(layers, [base, head, *sources], suites, programs=[base, head])
            texts: list[Text] = [lru_cache(partial(criterion.source, of)) for of in builds]
            samplers = _samplers_of_programs(found)
        else:
            whose = Whose(layers, [base, head], suites)
            commits = [of.revision.commit for of in builds]
            texts = [own(project, partial(project.commits.text, commit)) for commit in commits]
            samplers = _samplers(found)
        differs = Changed(base, head, _compiled(project, builds, found))
        parts = Parts(whose, differs, ratio, dict(zip(SIDES, texts, strict=False)))
        rounds = 0
        # A round takes as long as the ones before, and one more must fit into the time.
        while samplers and (time.monotonic() - start) * (1 + 1 / max(rounds, 1)) <= seconds:
            sides = SIDES[1:2] if ratio is None else SIDES[:2] if rounds % 2 else SIDES[1::-1]
            for sampler in [*samplers]:
                if why_not := _seen(packages, benchmark, sampler, whose, parts, sides):
                    samplers.remove(sampler)  # for all further rounds
                    found.missing.append(why_not)
            rounds += 1
            if parts.settled(samplers):
                break
    parts.tell(found)
    found.seconds = time.monotonic() - start
    return found, parts


def _compiled(project: Project, builds: Sequence[Artefact], found: Why) -> frozenset[str]:
    sides = [of.revision for of in builds]
    if any(releases.is_one(of.text) for of in sides):
        return frozenset()
    try:
        return changed.compiled(project.commits, sides[0].commit, sides[1].commit)
    except UsageError as error:
        found.missing.append(f"which compiled functions the change touches: {error}")
        return frozenset()


def _samplers(found: Why) -> list[str]:
    """The samplers that work here, the native one first. Notes what the others would have shown."""
    no_perf, no_pyspy = watched.unavailable("perf"), watched.unavailable(watched.PYTHON)
    if no_perf and no_pyspy:
        found.missing.append(f"anything at all, for no sampler works here: {no_perf}; {no_pyspy}")
        return []
    if no_pyspy:
        found.missing.append(f"functions and lines of Python: {no_pyspy}")
        return ["perf"]
    if no_perf:
        found.missing.append(f"the kernel's part: {no_perf}")
    return ["py-spy" if no_perf else "perf", watched.PYTHON]


def _samplers_of_programs(found: Why) -> list[str]:
    """For programs without Python: perf, if it works here."""
    if no_perf := watched.unavailable("perf"):
        found.missing.append(f"anything at all, for perf alone looks into programs: {no_perf}")
        return []
    return ["perf"]


def _seen(
    packages: Packages,
    benchmark: str,
    sampler: str,
    whose: Whose,
    parts: Parts,
    order: Sequence[str],
) -> str:
    """A sampler looks once at each of these sides, in processes of their own. Returns why it saw
    nothing; "" where it did."""
    apart = packages.listed()["head"].benchmarks[benchmark].type == "timeraw"
    look = watched.of_processes if apart else watched.window
    try:
        with packages.processes(SIDES[:2], random.Random()) as asks:
            for side in order:
                ask, its = asks[side]
                packages.prepare(ask, side, benchmark, number=its)
                parts.add(sampler, side, look(ask, sampler, whose, _WINDOW_S[sampler]))
    except (ContestError, ValueError, OSError) as error:
        tool = "py-spy" if sampler == watched.PYTHON else sampler
        return f"what {tool} sees: {f'{error}'.splitlines()[0]}"
    return ""
