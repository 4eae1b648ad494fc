"""What the verbs that profile share: the tools, for how long, and where the report goes."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.sampling.spec import TOOLS, Job
from rlox_opt.system.files import check_folder
from rlox_opt.system.numbers import real
from rlox_opt.system.usage import UsageError

FOLDER = Path("profiles")  # of reports, in the current folder


def add_arguments(parser: argparse.ArgumentParser, project: Project) -> None:
    """The options of `profile`."""
    parser.add_argument("algo", choices=workloads.names(project), help="the trainer to profile")
    if of := workloads.known(project):
        of.add_training(parser)
        of.add_switches(parser, "train")
    add = parser.add_argument_group("profiling").add_argument
    add(
        "--tools",
        type=_tools,
        default=TOOLS,
        metavar="LIST",
        help=f"comma-separated: {', '.join(TOOLS)}; or all, or none (all)",
    )
    add(
        "--seconds",
        type=real(3, 3600, "seconds"),
        metavar="S",
        help="how long each tool records (as long as its interval demands)",
    )
    add = parser.add_argument_group("output").add_argument
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="a new folder for the report (profiles/<date>_<machine>_<algo>)",
    )
    add("--json", action="store_true", help="print report.json to stdout, and nothing else")


def job_of(arguments: argparse.Namespace) -> Job:
    """What the arguments ask for.

    Raises:
        UsageError: they do not fit each other, the environment or the machine.
    """
    project: Project = arguments.project
    of = workloads.known(project)
    if of is None:
        raise UsageError("profile: this project names no training runs; profile a script of it")
    check_out(arguments.out)
    return Job(of.spec_of(project, arguments), arguments.tools, arguments.seconds)


def check_out(out: Path | None) -> None:
    """The report can be written; to find out afterwards would cost minutes. Raises UsageError where
    something is there, and NotWrittenError."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out}: is there already, and is not overwritten; use a new folder")
    check_folder(FOLDER if out is None else out.parent)


def _tools(text: str) -> tuple[str, ...]:
    if text == "all":
        return TOOLS
    if text == "none":
        return ()
    asked = [name.strip() for name in text.split(",")]
    for name in asked:
        if name not in TOOLS:
            near = difflib.get_close_matches(name, TOOLS, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise argparse.ArgumentTypeError(
                f"{name!r} is no tool; {hint}there are {', '.join(TOOLS)}, all and none"
            )
    return tuple(tool for tool in TOOLS if tool in asked)
