"""`rlox-opt diff`: did a commit make it slower? Two builds, timed paired, with a verdict each."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from rlox.opt import exits, revisions, trust, witness
from rlox.opt.arguments import UsageError
from rlox.opt.exits import CANNOT_TELL, INTERRUPTED
from rlox.opt.revisions import BENCHMARKS, REVISIONS, Artefact, NotBuiltError
from rlox.profiling.machine import machine
from rlox.profiling.scratch import scratch
from rlox.timing.family import Judgement
from rlox.timing.packages import SIDES, Failure, Packages
from rlox.timing.paired import LOOKS
from rlox.timing.restarts import ContestError
from rlox.timing.sequential import Comparison

if TYPE_CHECKING:
    from rlox.opt.progress import Lines

_MEMORY_KINDS = ("peakmemory", "track")
_MEMORY_RESTARTS = LOOKS[1]
# Of the budget, at the least; what one does not use goes to the next.
_OF_MEMORY, _OF_COUNTS = 0.15, 0.15
_BUILD_S = 40.0
_LONGEST = 60  # of a pattern that is told
_PATIENCE_S = 120.0  # for one benchmark in one process
BY_DEFAULT = re.compile(r"^(?!pairs\.)")
_EXAMPLES = """\
examples:
  rlox-opt diff main                      main against HEAD
  rlox-opt diff main .                    main against the working tree, changes and all
  rlox-opt diff main HEAD --bench 'gae|Ppo' --markdown
  rlox-opt diff HEAD+none HEAD+opt-p5     two feature sets of one commit
  rlox-opt diff main --budget 120 --json > diff.json
  rlox-opt diff HEAD HEAD --anyway        the machine's own differences: packages that are the same

ratio = head time / base time: over 1, head is slower. Both packages are loaded in one process and
called in turn; each restart is a new process, and the interval (99 %) is over restarts. After 5,
10, 20 and 40 of them a verdict may fall: slower (the whole interval lies above the threshold),
faster (below it), same (within) or undecided, with what it leans to: rather slower, rather same.
Benchmarks are those of asv_bench/; without --bench all but the twins of single optimisations.
"""


def add_to(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "diff",
        help="time a commit against another",
        description="Build two commits and time them against each other: per benchmark the "
        "verdict slower, faster, same or undecided, with ratio and interval; memory and "
        "instruction counts beside it.",
        epilog=_EXAMPLES
        + exits.told(
            good="measured, whatever the verdicts (`gate` turns them into an exit code)",
            interrupted="what is known is printed",
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(run=run, parser=parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is compared, and how closely."""
    add = parser.add_argument
    add("base", metavar="BASE", help='a revision, with features as REV+opt-p5,…; "." is the '
        "working tree")  # fmt: skip
    add("head", metavar="HEAD", nargs="?", default="HEAD", help="another (default: HEAD)")
    add("--bench", metavar="REGEX", type=pattern, default=BY_DEFAULT,
        help="only benchmarks whose name has it")  # fmt: skip
    add("--budget", metavar="S", type=positive, default=600.0,
        help="seconds of measuring at most, after the builds: times, memory and counts "
        "(default: 600)")  # fmt: skip
    add("--restarts", type=int, default=LOOKS[-1], choices=LOOKS, help="at most (default: 40)")
    add("--threshold", metavar="PERCENT", type=positive, default=1.0,
        help="the least change that matters: only what is surely more is slower or faster "
        "(default: 1)")  # fmt: skip
    add("--no-counts", action="store_true", help="no instructions, no allocations")
    add("--anyway", action="store_true", help="measure packages that are byte for byte the same")
    add("--markdown", action="store_true", help="print a table for a pull request")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")


@dataclass
class Found:
    """What a comparison of two builds knows so far."""

    base: Artefact
    head: Artefact
    times: Comparison
    memory: Comparison
    missing: dict[str, str]  # benchmarks that one side lacks, and which
    counts: dict[str, dict[str, witness.Counts]] = field(default_factory=dict)
    seconds: float = 0.0
    complete: bool = False
    needless: bool = False  # both packages are the same, which needs no measuring

    def verdicts(self) -> list[Judgement]:
        """Of all benchmarks that could be measured."""
        return [*self.times.judgements.values(), *self.memory.judgements.values()]

    def unmeasured(self) -> list[str]:
        """Benchmarks that the budget did not suffice for."""
        return [
            name
            for of in (self.times, self.memory)
            for name in of.names
            if name not in of.judgements and name not in of.failures
        ]

    def failures(self) -> dict[str, Failure]:
        """Of those that could not."""
        return self.times.failures | self.memory.failures


def run(arguments: argparse.Namespace) -> int:
    """Compare as asked; returns the exit code."""
    found = compared(arguments)
    if found is None:
        return CANNOT_TELL
    tell(found, arguments)
    if not found.complete:
        return INTERRUPTED
    return 0 if found.verdicts() or found.needless else CANNOT_TELL


def tell(
    found: Found, arguments: argparse.Namespace, more: Mapping[str, Any] | None = None
) -> None:
    """Print what was found as asked; JSON holds `more` as well."""
    from rlox.opt import verdicts

    if arguments.json:
        print(json.dumps({**facts(found), **(more or {})}))
    elif arguments.markdown:
        print("\n".join(verdicts.markdown(found)))
    else:
        verdicts.show(found)


def compared(arguments: argparse.Namespace) -> Found | None:
    """Build and measure what the arguments say; None, with a line on stderr, where it cannot be."""
    from rlox.opt.progress import reporter

    error: Callable[[str], Any] = arguments.parser.error
    try:
        sides = [revisions.resolve(text) for text in (arguments.base, arguments.head)]
        if "." not in (arguments.base, arguments.head) and revisions.dirty():
            print(
                "note: the working tree has changes, which are not measured; "
                'name it as "." to measure them',
                file=sys.stderr,
            )
        with reporter() as progress:
            progress.plan([*((f"build of {side.title}", _BUILD_S) for side in sides)])
            built = []
            for side in sides:
                progress.begin(f"build of {side.title}")
                built.append(revisions.build(side))
                progress.end("ready")
            if len(revisions.same_parts(built[0], built[1])) == 2 and not arguments.anyway:
                band = math.log1p(arguments.threshold / 100)
                nothing = Comparison([], band)
                return Found(built[0], built[1], nothing, nothing, {}, complete=True, needless=True)
            return measured(built[0], built[1], arguments, progress)
    except UsageError as problem:
        error(str(problem))
    except (NotBuiltError, ContestError) as problem:
        print(f"{arguments.parser.prog}: {problem}", file=sys.stderr)
    return None


def measured(
    base: Artefact, head: Artefact, arguments: argparse.Namespace, progress: Lines
) -> Found:
    """Time, weigh and count; what was known before a Ctrl-C is kept, marked incomplete.

    Raises:
        ContestError: the benchmarks cannot be listed.
        UsageError: no benchmark matches.
    """
    start = time.monotonic()
    until = start + arguments.budget
    counted = not arguments.no_counts and witness.available()
    band = math.log1p(arguments.threshold / 100)
    with side_by_side(base, head) as packages:
        names, missing = _chosen(packages, arguments.bench)
        times = Comparison(names["time"], band)
        memory = Comparison([name for kind in _MEMORY_KINDS for name in names[kind]], band)
        found = Found(base, head, times, memory, missing)
        try:
            of_memory = _OF_MEMORY * arguments.budget if memory.names else 0.0
            of_counts = _OF_COUNTS * arguments.budget if counted else 0.0
            of_times = until - time.monotonic() - of_memory - of_counts
            for line in trust.plan(times.names, band, of_times):
                progress.console.print(line, highlight=False)
            progress.begin("timing")
            times.run(
                packages.contests,
                arguments.restarts,
                of_times,
                lambda n, undecided, left: progress.note(
                    f"restart {n}, {undecided} undecided, at most {left:.0f} s to come",
                    n / arguments.restarts,
                ),
            )
            progress.end(f"{len(times.judgements)} verdicts")
            if memory.names:
                progress.begin("memory")
                memory.run(
                    lambda chosen, seed: chain(
                        packages.tracked([n for n in chosen if n in names["track"]], seed),
                        packages.peaks([n for n in chosen if n in names["peakmemory"]], seed),
                    ),
                    _MEMORY_RESTARTS,
                    until - time.monotonic() - of_counts,
                )
                progress.end(f"{len(memory.judgements)} verdicts")
            if counted:
                progress.begin("counting")
                _count(found, packages, progress, until)
                progress.end(f"{len(found.counts['head'])} benchmarks")
            found.complete = True
        except KeyboardInterrupt:
            for comparison in (times, memory):
                comparison.look()
    found.seconds = time.monotonic() - start
    return found


@contextlib.contextmanager
def side_by_side(base: Artefact, head: Artefact, *, again: bool = True) -> Iterator[Packages]:
    """Base, head, and unless told otherwise base again, each in a folder of its own: the loader
    takes a library that it has loaded from the same file for the same."""
    with scratch(REVISIONS) as folder:
        folders = {}
        sides = dict(zip(SIDES, (base, head, base) if again else (base, head), strict=False))
        for side, artefact in sides.items():
            folders[side] = folder / side
            shutil.copytree(artefact.folder, folders[side])
        yield Packages(folders, BENCHMARKS, _PATIENCE_S)


def _chosen(
    packages: Packages, wanted: re.Pattern[str]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The benchmarks of each kind that both sides have, and where the others are missing."""
    names: dict[str, list[str]] = {}
    missing: dict[str, str] = {}
    every: list[str] = []
    for kind, there in packages.names_of("time", *_MEMORY_KINDS).items():
        every += there
        chosen = [name for name in there if wanted.search(name)]
        names[kind] = [name for name in chosen if len(there[name]) == 2]
        gone = {"base": "head", "head": "base"}
        missing |= {name: gone[there[name][0]] for name in chosen if len(there[name]) == 1}
    if not any(names.values()) and not missing:
        close = ", ".join(every[:3])
        raise UsageError(
            f"--bench: {wanted.pattern!r} matches no benchmark; there are "
            f"{len(every)}, such as {close}"
        )
    return names, missing


def _count(found: Found, packages: Packages, progress: Lines, until: float) -> None:
    seconds = {name: found.times.medians(name)[0] for name in found.times.judgements}
    found.counts = {"base": {}, "head": {}}

    def hear(side: str, name: str, counts: witness.Counts) -> None:
        found.counts[side][name] = counts
        done = sum(map(len, found.counts.values()))
        progress.note(name, done / (2 * len(seconds)))

    witness.count_all(packages, [(side, seconds) for side in found.counts], hear, until)


def facts(found: Found) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "schema": 1,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "base": found.base.revision.commit,
        "head": found.head.revision.commit,
        "features": {"base": found.base.features, "head": found.head.features},
        "identical": revisions.same_parts(found.base, found.head),
        "machine": machine(),
        "threshold": math.expm1(found.times.band),
        "results": _rows(found, found.times, found.times.judgements),
        "aa": _rows(found, found.times, found.times.aa(), counted=False),
        "memory": _rows(found, found.memory, found.memory.judgements, counted=False),
        "failures": [
            {"benchmark": name, "side": failure.side, "reason": failure.reason}
            for name, failure in found.failures().items()
        ],
        "unmeasured": found.unmeasured(),
        "missing": [{"benchmark": name, "side": side} for name, side in found.missing.items()],
        "seconds": round(found.seconds, 1),
        "complete": found.complete,
    }


def _rows(
    found: Found, of: Comparison, judgements: Mapping[str, Judgement], *, counted: bool = True
) -> list[dict[str, Any]]:
    rows = []
    for name, judgement in judgements.items():
        base, head = of.medians(name)
        row = {
            "benchmark": name,
            "ratio": judgement.ratio,
            "ci99": judgement.ci99,
            "verdict": judgement.verdict,
            "leans": judgement.leans,
            "restarts": judgement.restarts,
            "base": base,
            "head": head,
        }
        for what in ("instructions", "allocations"):
            sides = {side: found.counts.get(side, {}).get(name) for side in ("base", "head")}
            row[what] = {
                side: counts[what] if counts and counted else None for side, counts in sides.items()
            }
        rows.append(row)
    return rows


def pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        given = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        raise argparse.ArgumentTypeError(f"is {given}, no regular expression: {error}") from None


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"is {text!r}, expected a number over 0")
    return value
