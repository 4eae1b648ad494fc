"""Why a benchmark takes longer, or less long, in head than in base: what of its calls has grown,
from samples of either side that are taken in turn.

Two samplers look, one after the other. One sees native stacks (perf, or py-spy where perf is not to
be had) and says whose code grew, and which native function. The other (py-spy without native
stacks) has Python's functions and lines at hardly any cost; from these come the functions that the
change touches and that grew, though the time may be spent in what they call. Each result is a part
of the whole change, with its interval; what is not surely more than nothing is not named.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from rlox_opt.harness.packages import SIDES, Packages
from rlox_opt.harness.restarts import ContestError
from rlox_opt.history import watched
from rlox_opt.history.grown_parts import Parts
from rlox_opt.project import changed, releases
from rlox_opt.project.builds import Artefact
from rlox_opt.project.changed import Changed
from rlox_opt.project.explained import Why
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import side_by_side
from rlox_opt.sampling.samples import Samples
from rlox_opt.sampling.whose import Whose
from rlox_opt.system.usage import UsageError

BENCHMARK_S = 25.0  # for one benchmark: processes, samples and their reading
MOST = 3  # benchmarks are looked into
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
    """Look for so many seconds at a benchmark whose time changed by `ratio`. What fails is told in
    `missing`; raises ContestError where the sides cannot be started."""
    start = time.monotonic()
    found = Why(benchmark, ratio)
    with side_by_side(project, base, head, again=False) as packages:
        if packages.suite.program in _COMPILED_SUITES:
            found.missing.append("benches of criterion run in programs that are not looked into")
            return found
        packages.beginning = benchmark
        own = (packages.sides["base"].folder, packages.sides["head"].folder)
        whose = Whose(project.settings.layers, own, [packages.suite.folder])
        differs = Changed(own[0], own[1], _compiled(project, base, head, found))
        parts = Parts(project, whose, differs, ratio)
        samplers = _samplers(found)
        rounds = 0
        # A round takes as long as the one before; one more must end in time.
        while samplers and (time.monotonic() - start) * (1 + 1 / max(rounds, 1)) <= seconds:
            _round(packages, benchmark, samplers, whose, parts, found, rounds)
            rounds += 1
            if parts.settled(samplers):
                break
    found.samples = {of: tuple(parts.samples(of)) for of in samplers}  # type: ignore[misc]
    found.layers, found.native = parts.layers(), parts.native()
    found.functions, found.lines = parts.functions(), parts.lines()
    found.touched = parts.touched()
    found.seconds = time.monotonic() - start
    return found


def _compiled(project: Project, base: Artefact, head: Artefact, found: Why) -> frozenset[str]:
    sides = base.revision, head.revision
    if any(releases.is_one(of.text) for of in sides):
        return frozenset()
    try:
        return changed.compiled(project.commits, sides[0].commit, sides[1].commit)
    except UsageError as error:
        found.missing.append(f"which compiled functions the change touches: {error}")
        return frozenset()


def _samplers(found: Why) -> list[str]:
    """Those that work here, the native one first. What the lack of the others hides is told."""
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


def _round(
    packages: Packages,
    benchmark: str,
    samplers: list[str],
    whose: Whose,
    parts: Parts,
    found: Why,
    number: int,
) -> None:
    """Each sampler once on each side, in turn; a sampler that fails is left out from then on."""
    order = SIDES[:2] if number % 2 == 0 else SIDES[1::-1]
    apart = packages.listed()["head"].benchmarks[benchmark].type == "timeraw"
    for sampler in [*samplers]:
        try:
            with packages.processes(SIDES[:2], random.Random()) as asks:
                for side in order:
                    ask, its = asks[side]
                    packages.prepare(ask, side, benchmark, number=its)
                    look = watched.of_processes if apart else watched.window
                    seen: Samples = look(ask, sampler, whose, _WINDOW_S[sampler])
                    parts.add(sampler, side, seen)
        except (ContestError, ValueError, OSError) as error:
            samplers.remove(sampler)
            found.missing.append(f"what {_title(sampler)} sees: {f'{error}'.splitlines()[0]}")


def _title(sampler: str) -> str:
    return "py-spy" if sampler == watched.PYTHON else sampler


def slower_first(ratios: Mapping[str, float]) -> list[str]:
    """The benchmarks to look into: what became slower, the most first, then what became faster."""
    slower = sorted((n for n in ratios if ratios[n] > 1), key=lambda n: -ratios[n])
    return [*slower, *sorted((n for n in ratios if ratios[n] < 1), key=lambda n: ratios[n])]
