"""`rlox-opt diff`: did a commit make it slower? Two builds, timed paired, with a verdict each."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rlox_opt.cli import why
from rlox_opt.cli.sides import add_arguments as add_sides
from rlox_opt.cli.sides import (
    asked_notes,
    builds_for,
    built,
    in_environments,
    measured_by,
    resolved,
)
from rlox_opt.cli.types import Once, pattern
from rlox_opt.harness.sequential import Comparison
from rlox_opt.history import acknowledged
from rlox_opt.project.artefacts import same_surroundings
from rlox_opt.project.builds import Artefact, same_parts
from rlox_opt.project.commits import later
from rlox_opt.project.parity import findings
from rlox_opt.project.side_by_side import ComparedBuilds, Meant, facts, measured, share_a_process
from rlox_opt.project.unmeasured import dirty
from rlox_opt.stats.paired import LOOKS
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, GOOD, INTERRUPTED
from rlox_opt.system.files import NotReadError
from rlox_opt.system.numbers import positive
from rlox_opt.system.output import say

if TYPE_CHECKING:
    from rlox_opt.history.acknowledged import Acknowledgement
    from rlox_opt.project.commits import Revision
    from rlox_opt.project.project import Project
    from rlox_opt.project.suites import Suite

_EXAMPLES = """\
examples:
  rlox-opt diff main                      main against HEAD
  rlox-opt diff main .                    main against the working tree, changes and all
  rlox-opt diff main...HEAD               what this branch changed, also where main has gone on
  rlox-opt diff main HEAD --bench 'gae|Ppo' --markdown
  rlox-opt diff HEAD+none HEAD+opt-p5     two feature sets of one commit
  rlox-opt diff main --budget 120 --json > diff.json
  rlox-opt diff HEAD HEAD --anyway        the machine's own differences: packages that are the same
  rlox-opt diff v1 v2 --suite main        benchmarks of main, for commits that lack them
  rlox-opt diff HEAD HEAD --with base:numpy==1.26 --with head:numpy==2.3
  rlox-opt diff HEAD HEAD --python base:3.11 --python head:3.13
  rlox-opt diff pypi:networkx==3.2 .      a release against the working tree

ratio = head time / base time: above 1 head is slower. Each side has processes of its own, which
are called in turn on one core; where the project says one-process = true, one process has both.
Each restart has new processes, and the interval (99 %) is over restarts. A verdict can be reached
after 5, 10, 20 and 40 restarts, or where time is short after 3: slower (the whole interval lies
above 1 by more than the threshold, and the benchmark stands out among all of the run), faster
(below 1 by more) or same (between). Otherwise a benchmark is undecided, and the likeliest verdict
is named: rather slower, rather same. Column n of the table is the number of restarts.
Benchmarks are those of the suite of HEAD; without --bench all but those that the project leaves
out. Each side is built in an environment of its own, by uv.
"""


def add_to(verbs: Any, project: Project) -> None:
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
    )
    add_arguments(parser, project)
    parser.set_defaults(run=run, parser=parser)


def add_arguments(parser: argparse.ArgumentParser, project: Project) -> None:
    """What is compared, and how closely."""
    add = parser.add_argument
    add("base", metavar="BASE", help="a revision, with cargo's features as in "
        'REV+opt-p5,opt-p7; "." is the working tree, pypi:NAME==1.2 a release, and A...B, as in '
        "git, the commit at which B branched off from A")  # fmt: skip
    add("head", metavar="HEAD", nargs="?",
        help="what is compared with BASE (default: HEAD; where BASE is A...B, B)")  # fmt: skip
    add("--bench", metavar="REGEX", action=Once, type=pattern, default=project.compared,
        help="only benchmarks whose name it is found in; of ^MODULE only that "
        "module is read")  # fmt: skip
    add("--budget", metavar="S", type=positive, default=600.0,
        help="seconds of measuring at most, once both sides are built and have read the suite: "
        "times, memory and counts (default: 600)")  # fmt: skip
    add(
        "--restarts",
        type=int,
        default=LOOKS[-1],
        choices=LOOKS,
        help="restarts at most (default: 40)",
    )
    add("--threshold", metavar="PERCENT", type=positive, default=1.0,
        help="the smallest change that matters; slower and faster are said only where "
        "all of the interval lies beyond it (default: 1)")  # fmt: skip
    add_sides(parser)
    add("--apart", action="store_true", help="run each side in a process of its own, also where "
        "the project says one-process = true")  # fmt: skip
    add("--no-counts", action="store_true", help="do not count instructions and allocations")
    add("--no-coverage", action="store_true", help="do not look for functions that the change "
        "touches and no benchmark reaches")  # fmt: skip
    why.add_to(parser)
    add("--anyway", action="store_true", help="measure packages that are byte for byte the same")
    add("--markdown", action="store_true", help="print a table for a pull request")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Compare as asked; returns the exit code."""
    compared = compare(arguments)
    tell(compared, arguments)
    if not compared.complete:
        return INTERRUPTED
    return GOOD if compared.verdicts() or compared.needless else CANNOT_TELL


def tell(
    compared: ComparedBuilds, arguments: argparse.Namespace, more: Mapping[str, Any] | None = None
) -> None:
    """Print what was found as asked; JSON holds `more` as well."""
    from rlox_opt.views import verdicts

    if arguments.json:
        print(json.dumps({**facts(compared), **(more or {})}))
    elif arguments.markdown:
        print("\n".join(verdicts.markdown(compared)))
    else:
        verdicts.show(compared)


def compare(arguments: argparse.Namespace) -> ComparedBuilds:
    """Build and measure what the arguments say.

    Raises:
        ContestError: the benchmarks cannot be listed.
        NotBuiltError: a revision does not build.
        UsageError: there is no such revision, or no such benchmark.
    """
    from rlox_opt.system.progress import reporter

    project: Project = arguments.project
    texts = arguments.base, arguments.head or later(arguments.base)
    sides = resolved(project, texts, arguments)
    project, suite = measured_by(project, sides, arguments.suite)
    project, suite = in_environments(project, suite, sides)
    if arguments.apart:
        own = msgspec.structs.replace(project.settings, one_process=False)
        project = dataclasses.replace(project, settings=own)
    for side in sides:
        project.builds.check(side)
    if "." not in texts and dirty(project):
        say(
            'note: the working tree has changes, which are not measured; name it as "." to '
            "measure them",
            stderr=True,
        )
    known = meant(project, sides)
    with reporter() as progress:
        base, head = built(builds_for(project, arguments.bench), sides, progress)
        notes = _notes(project, suite, base, head)
        for note in notes:
            progress.say(note)
        if not arguments.anyway and _one_and_the_same(base, head):
            nothing = Comparison([], math.log1p(arguments.threshold / 100))
            return ComparedBuilds(
                base, head, nothing, nothing, {}, notes=notes, complete=True, needless=True
            )
        if told := why.announced(arguments.why, arguments.budget):
            progress.say(told)
        kept = why.reserved(arguments.why, arguments.budget)
        compared = measured(project, base, head, arguments, progress, notes, kept)
        if arguments.why is not False and compared.complete:
            left = why.left(arguments.why, arguments.budget, compared.seconds)
            why.add(project, compared, arguments.why, left, progress)
    compared.meant = {
        name: Meant(answer.ratio, answer.reason)
        for name in compared.slower()
        if (answer := acknowledged.answer_to(known, name, compared.kinds.get(name, "time")))
    }
    return compared


def meant(project: Project, sides: Sequence[Revision]) -> Sequence[Acknowledgement]:
    """What the change acknowledges; nothing, which is told, where one side's file cannot be read:
    an old commit's may have another form, and nobody can mend it."""
    try:
        return acknowledged.of_change(project, *sides)
    except NotReadError as problem:
        say(f"note: no regression is taken as acknowledged: {problem}", stderr=True)
        return ()


def _notes(project: Project, suite: Suite, base: Artefact, head: Artefact) -> tuple[str, ...]:
    """What people should know of suite and sides, each once. Raises UsageError where something
    between the sides is different that nobody asked for."""
    from rlox_opt.project.suites import uncovered

    told = [*asked_notes(project, suite), *base.notes, *head.notes]
    if project.settings.one_process and not share_a_process(project, base, head):
        told.append(
            "one-process = true does not hold for these two, which run in different environments: "
            "each has a process of its own, and small changes are told less surely"
        )
    return tuple(dict.fromkeys([*told, *findings(base, head), *uncovered(suite)]))


def _one_and_the_same(base: Artefact, head: Artefact) -> bool:
    """Whether both packages are byte for byte the same, and run in the same environment."""
    return same_parts(base, head) == [*base.digests] and same_surroundings(base, head)
