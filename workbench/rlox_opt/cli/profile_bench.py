"""`rlox-opt profile bench`: where the calls of one benchmark spend their time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from rlox_opt.cli.sides import builds_for, measured_by
from rlox_opt.harness.restarts import ContestError
from rlox_opt.project.builds import NotBuiltError
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import named, side_by_side
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, GOOD, INTERRUPTED
from rlox_opt.system.usage import UsageError

_EXAMPLES = """\
examples:
  rlox-opt profile bench 'sums.Suite.time_sum(2048)'
  rlox-opt profile bench time_sum --at main --json

The benchmark is prepared, then called over and over while perf looks on, or py-spy where perf is
not to be had, and after that py-spy without native stacks. What is done between calls does not
count. Whose code is it: the project's own, a library's, the interpreter's, the kernel's? Which of
its functions and lines? Why it is slower than before, `rlox-opt diff --why` says.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the kind to `profile`."""
    parser = verbs.add_parser(
        "bench",
        help="the calls of one benchmark: layers, functions and lines",
        description="Sample the calls of one benchmark, and rank the layers, functions and lines "
        "that they spend their time in.",
        epilog=_EXAMPLES + exits.told(interrupted="nothing is printed"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bench", metavar="NAME", help="its name, or a part of it that no other has")
    parser.add_argument(
        "--at", metavar="REV", default="HEAD", help='a revision, or "." (default: HEAD)'
    )
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Sample as asked; returns the exit code."""
    from rich.console import Console

    from rlox_opt.history import why
    from rlox_opt.system.progress import reporter
    from rlox_opt.views import why as told

    error: Callable[[str], Any] = arguments.parser.error
    project: Project = arguments.project
    try:
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
    except UsageError as problem:
        error(str(problem))
    except (NotBuiltError, ContestError, ValueError) as problem:
        print(f"{arguments.parser.prog}: {problem}", file=sys.stderr)
        return CANNOT_TELL
    except KeyboardInterrupt:
        return INTERRUPTED
    if arguments.json:
        print(json.dumps({"schema": 2, "commit": revision.commit, **found.facts()}))
    else:
        print("\n".join(told.of_one(found, Console().width)))
    return GOOD if any(map(sum, found.samples.values())) else CANNOT_TELL
