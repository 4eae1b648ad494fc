"""`rlox-opt profile diff`: training before and after a change, by layer, phase and function."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, INTERRUPTED
from rlox_opt.system.files import NotWrittenError, check_folder, write
from rlox_opt.system.numbers import positive, whole
from rlox_opt.system.output import say
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.history.compared import Compared

_EXAMPLES = """\
examples:
  rlox-opt profile diff profiles/before profiles/after
  rlox-opt profile diff main HEAD                     two commits, five rounds: 5 minutes
  rlox-opt profile diff main . --algo sac --page diff.html
  rlox-opt profile diff HEAD+none HEAD+opt-p1         two feature sets of one commit
  rlox-opt profile diff --disable r4                  the build that is installed, with and without

A and B are each a report's folder, as `rlox-opt profile` writes it, or a folder of several such
folders, which count as repeated runs. Or they are revisions as in `rlox-opt diff`: then both train
in turns, in a random order each round and in a process each. Where the two folders come from
different machines, their times are not compared, only the shares of each layer.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the kind to `profile`."""
    parser = verbs.add_parser(
        "diff",
        help="two profiles, commits or flag sets against each other",
        description="What takes more and what less time in training, by layer, phase and function, "
        "with intervals over repeated runs and a differential flamegraph.",
        epilog=_EXAMPLES
        + exits.told(
            good="a step takes as long as before, or less",
            difference="a step takes longer (or a layer's share grew)",
            cannot_tell="also with one run a side, which gives no interval",
            interrupted="the finished rounds are reported",
        ),
    )
    parser.add_argument("before", metavar="A", nargs="?", help="a folder, or a revision")
    parser.add_argument("after", metavar="B", nargs="?", help="another")
    add = parser.add_argument
    add("--threshold", metavar="PERCENT", type=positive, default=2.0,
        help="of a step: a change whose whole interval is within this counts as the same; any "
        "other may count as more or less (default: 2)")  # fmt: skip
    add(
        "--runs",
        metavar="N",
        type=whole(1, 100),
        default=5,
        help="rounds of revisions (default: 5)",
    )
    add("--page", metavar="FILE", type=Path, help="write a page with the differential flamegraph")
    add("--markdown", action="store_true", help="print tables for a pull request")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    add = parser.add_argument_group("training of revisions").add_argument
    names = workloads.names(project)
    add(
        "--algo",
        choices=names,
        default=next(iter(names), None),
        help="the training run (%(default)s)",
    )
    if of := workloads.known(project):
        of.add_training(parser)
        of.add_switches(parser, "train B")
    else:
        parser.set_defaults(enable=frozenset(), disable=frozenset())
    parser.set_defaults(run=run, parser=parser, tools=(), seconds=None, out=None)


def run(arguments: argparse.Namespace) -> int:
    """Compare as asked; returns the exit code."""
    from rlox_opt.history import sides
    from rlox_opt.system.process import ChildError

    complete = True
    try:
        _check_page(arguments.page)
        if sides.are_folders(arguments):
            compared = sides.of_folders(arguments)
        else:
            compared, complete = sides.of_builds(arguments)
    except (ChildError, ValueError) as problem:
        say(f"{arguments.parser.prog}: {problem}", stderr=True)
        return CANNOT_TELL
    code, why = decision(compared)
    tell(compared, arguments, {"complete": complete, "exit_code": code, "why": why})
    say(f"{arguments.parser.prog}: {why}", stderr=True)
    return code if complete else INTERRUPTED


def _check_page(page: Path | None) -> None:
    """The page can be written; to find out afterwards would cost all rounds."""
    if page is None:
        return
    if page.is_dir():
        raise UsageError(f"--page {page}: is a folder; name a file")
    if page.exists() and not page.is_file():
        raise UsageError(f"--page {page}: is no regular file; name another")
    if not page.parent.is_dir():
        raise UsageError(f"--page {page}: no such folder; use one that is there")
    check_folder(page.parent)


def decision(compared: Compared) -> tuple[int, str]:
    """The exit code, and why: by the whole where steps can be compared, else by the layers."""
    kind = "training" if compared.steps else "layer"
    judged = [change for change in compared.changes if change.kind == kind]
    if more := [change.name for change in judged if change.verdict == "more"]:
        return DIFFERENCE, f"takes more: {', '.join(more)}"
    if not judged:
        return CANNOT_TELL, "cannot tell: nothing was measured on both sides"
    if any(change.verdict == "undecided" for change in judged):
        more_runs = "" if compared.repeated else "; profile each side at least twice"
        return CANNOT_TELL, f"cannot tell: the {kind} is undecided{more_runs}"
    return 0, f"within {100 * compared.band:g} %, or less"


def tell(compared: Compared, arguments: argparse.Namespace, more: dict[str, Any]) -> None:
    """Print as asked, and write the page."""
    from rlox_opt.views import compared_page

    if arguments.json:
        print(json.dumps(facts(compared) | more))
    elif arguments.markdown:
        print(compared_page.markdown(compared), end="")
    else:
        from rlox_opt.views.terminal import show_sections

        show_sections(compared_page.heading(compared), compared_page.sections(compared))
        for text in compared_page.explained(compared):
            say(text)
    if arguments.page is not None:
        text = compared_page.page(compared)
        try:
            write(arguments.page, text)
        except NotWrittenError as error:
            raise error.keeping(text, ".html") from None


def facts(compared: Compared) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "schema": 1,
        "before": compared.titles[0],
        "after": compared.titles[1],
        "runs": [len(compared.before), len(compared.after)],
        "rounds": compared.rounds,
        "shares_of": "a step before" if compared.steps else "training",
        "threshold": compared.band,
        "notes": list(compared.notes),
        "changes": [asdict(c) | {"change": c.change} for c in compared.changes],
    }
