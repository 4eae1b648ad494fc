"""`rlox-opt publish`: the history as static pages, which open from files and need no network."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from rlox_opt.cli import regressions
from rlox_opt.history import acknowledged
from rlox_opt.project import calibration
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.exits import GOOD, INTERRUPTED
from rlox_opt.system.output import say
from rlox_opt.system.usage import UsageError

_EXAMPLES = """\
examples:
  rlox-opt publish
  rlox-opt publish /tmp/pages && xdg-open /tmp/pages/index.html

The pages show the recordings of `rlox-opt record` (of HEAD, its first parent, that one's first
parent and so on), the cards of optimisations with their records, and the calibrations. Only pages
that have changed are written again.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "publish",
        help="make pages of the history, commit after commit",
        description="Make static pages of the recorded history: each benchmark over commits, what "
        "each commit made slower or faster and in which layer, what optimisations were predicted "
        "to bring and brought, profiles, and how far the figures can be trusted.",
        epilog=_EXAMPLES
        + exits.told(
            cannot_tell="also where a recording cannot be read",
            interrupted="the pages written so far are whole",
        ),
    )
    parser.add_argument(
        "out", metavar="OUT", nargs="?", type=Path, default=project.pages,
        help="a new folder, or one published before (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--history", metavar="FOLDER", type=Path, default=project.history,
        help="the folder of the recordings (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Publish; returns the exit code."""
    from rlox_opt.history import ledger
    from rlox_opt.system.progress import reporter
    from rlox_opt.views.site import publish
    from rlox_opt.views.site.model import History, read
    from rlox_opt.views.site.writer import ForeignFolderError

    project: Project = arguments.project
    try:
        with reporter() as progress:
            progress.begin("level changes")
            recordings = read(arguments.history)
            if not recordings:  # pages of nothing would replace those that are there
                raise UsageError(
                    f"--history {arguments.history}: holds no recordings; `rlox-opt record` makes "
                    f"them, in {project.history}"
                )
            order = regressions.order(project, [of.entry for of in recordings], _say)
            known = acknowledged.whole(regressions.acknowledgements(project, None), order or ())
            least = calibration.smallest(project.records)
            table = project.settings.thresholds
            history = History.of(recordings, order, least, known, table)
            progress.end(f"{len(history.moved)} in {len(history.series)} series")
            progress.begin("pages")
            published = publish(
                arguments.out, history, ledger.lines(project), project, tell=progress.note
            )
            progress.end(f"{published.written} written, {published.kept} as they were")
    except ForeignFolderError as problem:
        arguments.parser.error(f"OUT {problem}")
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on")
        return INTERRUPTED
    index = arguments.out / "index.html"
    if arguments.json:
        print(json.dumps(dataclasses.asdict(published) | {"index": str(index)}))
    else:
        say(f"{published.commits} commits, {published.series} series: {index}")
    return GOOD


def _say(text: str) -> None:
    say(f"rlox-opt publish: {text}", stderr=True)
