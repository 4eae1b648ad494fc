"""`rlox-opt profile bench`: where the calls of one benchmark spend their time."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rlox_opt.cli.sides import builds_for, measured_by
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import named, side_by_side
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, GOOD
from rlox_opt.system.output import say

_EXAMPLES = """\
examples:
  rlox-opt profile bench 'sums.Suite.time_sum(2048)'
  rlox-opt profile bench time_sum --at main --json

The benchmark is set up once and then called over and over. perf samples its stacks, or py-spy
where perf does not work; a second recording by py-spy, without native stacks, gives the lines of
Python. Time between calls is left out. The report tells whose code takes the time (the project's
own, a library's, the interpreter's or the kernel's), and which functions and lines. To learn why
a benchmark became slower, use `rlox-opt diff --why`.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the kind to `profile`."""
    parser = verbs.add_parser(
        "bench",
        help="the calls of one benchmark: layers, functions and lines",
        description="Sample the calls of one benchmark, and rank the layers, functions and lines "
        "that they spend their time in.",
        epilog=_EXAMPLES + exits.told(interrupted="nothing is printed"),
    )
    parser.add_argument("bench", metavar="NAME", help="its name, or a part of it that no other has")
    parser.add_argument(
        "--at", metavar="REV", default="HEAD", help='a revision, or "." (default: HEAD)'
    )
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Sample as asked; returns the exit code."""
    from rlox_opt.history import why
    from rlox_opt.system.progress import reporter
    from rlox_opt.views import why as told

    project: Project = arguments.project
    revision = project.commits.resolve(arguments.at)
    project, _ = measured_by(project, [revision], None)
    with reporter() as progress:
        progress.begin(f"build of {revision.title}")
        built = builds_for(project, arguments.bench).build(revision)
        progress.end("ready")
        with side_by_side(project, built, built, again=False) as packages:
            name = named(arguments.bench, packages.names("time"), "NAME")
        progress.begin(name)
        found = why.of_calls(project, built, name)
        progress.end(f"{sum(map(sum, found.samples.values()))} samples")
    if arguments.json:
        print(json.dumps({"schema": 2, "commit": revision.commit, **found.facts()}))
    else:
        say("\n".join(told.of_one(found)))
    return GOOD if any(map(sum, found.samples.values())) else CANNOT_TELL
