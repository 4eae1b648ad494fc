"""`rlox-opt lint-suite`: what is wrong with the benchmarks themselves."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from rlox_opt.cli.sides import SUITE_OF_ONE, add_suite, builds_for, built, measured_by
from rlox_opt.cli.types import Once, pattern
from rlox_opt.project.commits import WORKING_TREE
from rlox_opt.system import exits
from rlox_opt.system.exits import DIFFERENCE, GOOD, INTERRUPTED
from rlox_opt.system.numbers import positive
from rlox_opt.system.output import number_of, say
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.project.commits import Revision
    from rlox_opt.project.lint.finding import Finding
    from rlox_opt.project.project import Project
    from rlox_opt.project.suites import Suite

_EXAMPLES = """\
examples:
  rlox-opt lint-suite --static            the source of the working tree alone; builds nothing
  rlox-opt lint-suite                     the source, and then each benchmark is run
  rlox-opt lint-suite HEAD --base main    HEAD's suite; tells which failures main has, too
  rlox-opt lint-suite --bench ^work --budget 30 --json

The source of asv's benchmarks shows functions that asv never collects; parameters that neither a
benchmark nor its setup reads; data drawn without a seed; and globals or attributes of classes that
one benchmark changes and another reads. Only changes by name are seen: DATA.sort() is found, a
function that sorts its argument, as in sort(DATA), is not.
Running them shows benchmarks that fail; calls that become slower or faster the more of them follow
one setup; and calls after a setup that are too short for the clock. Such a finding is reported only
where it shows in each of five setups, and again in another process.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "lint-suite",
        help="find what is wrong with the benchmarks",
        description="Find benchmarks that measure nothing, or something else than they seem to. "
        "Each finding is a line with the reason and the remedy.",
        epilog=_EXAMPLES
        + exits.told(
            good="nothing is found",
            difference="something is found",
            interrupted="what is known is printed",
        ),
    )
    add = parser.add_argument
    add("rev", metavar="REV", nargs="?", default=WORKING_TREE,
        help='the revision whose suite is checked, and whose build runs it (default: ".", the '
        "working tree)")  # fmt: skip
    add("--base", metavar="REV", help="another revision; benchmarks that fail are tried there, too")
    add_suite(parser, SUITE_OF_ONE)
    add("--bench", metavar="REGEX", action=Once, type=pattern, default=project.compared,
        help="run only benchmarks whose name has it")  # fmt: skip
    add("--static", action="store_true", help="by the source alone; nothing is built")
    add("--budget", metavar="S", type=positive, default=120.0,
        help="seconds of running at most, once it is built and read (default: 120)")  # fmt: skip
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Look for it, and tell; returns the exit code.

    Raises:
        ContestError: the benchmarks cannot be listed.
        NotBuiltError: a revision does not build.
        UsageError: there is no such revision, no suite, or no such benchmark.
    """
    if arguments.static and arguments.base:
        raise UsageError("--base: nothing is run with --static; leave one of them out")
    project: Project = arguments.project
    head = project.commits.resolve(arguments.rev)
    base = project.commits.resolve(arguments.base) if arguments.base else None
    project, suite = measured_by(project, [head], arguments.suite)
    found = _static(suite)
    not_run: list[str] = []
    complete = True
    if not arguments.static:
        try:
            _dynamic(project, suite, head, base, arguments, found, not_run)
        except KeyboardInterrupt:
            complete = False
    found.sort(key=lambda each: (each.file, each.line, each.check, each.name))
    if arguments.json:
        findings = [dataclasses.asdict(each) for each in found]
        said = {"schema": 1, "findings": findings, "not_run": not_run, "complete": complete}
        print(json.dumps(said))
    else:
        if arguments.static and suite.kind.name != "asv":
            say(
                f"a {suite.kind.name} suite: only uncollected benchmarks are looked for; run "
                "without --static",
                stderr=True,
            )
        for each in found:
            say(each.told())
        if not_run:
            few = ", ".join(not_run[:3])
            say(f"The budget did not suffice for {len(not_run)}, such as {few}.", stderr=True)
        say(f"{len(found) or 'nothing'} found", stderr=True)
    if not complete:
        return INTERRUPTED
    return DIFFERENCE if found else GOOD


def _static(suite: Suite) -> list[Finding]:
    """By the source: of asv's suites all, of others what is never run."""
    from rlox_opt.project import kinds
    from rlox_opt.project.lint import static

    if suite.kind is kinds.ASV:
        return static.findings(suite.folder)
    return [static.uncollected(of) for of in suite.kind.uncovered(suite.folder)]


def _dynamic(
    project: Project,
    suite: Suite,
    head: Revision,
    base: Revision | None,
    arguments: argparse.Namespace,
    found: list[Finding],
    not_run: list[str],
) -> None:
    """Run them; what is found is added to `found`."""
    from rlox_opt.project import kinds
    from rlox_opt.project.lint import dynamic, source
    from rlox_opt.project.side_by_side import READING, side_by_side
    from rlox_opt.system.patterns import beginning
    from rlox_opt.system.progress import reporter

    sides = [of for of in (base, head) if of is not None]
    for side in sides:
        project.builds.check(side)
    with reporter() as progress:
        made = built(builds_for(project, arguments.bench), sides, progress)
        with side_by_side(project, made[0], made[-1], again=False) as packages:
            if base is None:
                packages.sides = {"head": packages.sides["head"]}
            packages.beginning = beginning(arguments.bench)
            progress.begin(READING)
            listed = packages.listed()["head"]
            names = [name for name in listed.benchmarks if arguments.bench.search(name)]
            progress.end(f"{number_of(len(names), 'benchmark')} to run")
            found += dynamic.broken(packages, suite.folder)
            if not names and not listed.broken:
                raise UsageError(
                    f"--bench: {arguments.bench.pattern!r} matches none of the suite's benchmarks"
                )
            asv = suite.kind is kinds.ASV
            modules = source.modules(suite.folder) if asv else []
            sources = (
                {of.name: of for of in source.benchmarks(suite.folder, modules)} if asv else {}
            )
            run = dynamic.Run(packages, sources, suite.folder.name, arguments.budget, not_run)
            progress.begin("running")
            try:
                run.run(names, found, progress.note)
            finally:
                progress.end(number_of(len(names) - len(not_run), "benchmark"))
