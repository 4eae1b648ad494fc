"""`rlox-opt profile train`: where training's time goes, ranked, with what could be gained."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import secrets
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.cli import profile_several
from rlox_opt.cli.arguments import FOLDER, add_arguments, job_of
from rlox_opt.cli.missing import missing
from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, INTERRUPTED
from rlox_opt.system.files import NotWrittenError
from rlox_opt.system.files import write as write_file
from rlox_opt.system.output import say
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.sampling.driver import Findings


_ABOUT = """
The first run has no tool attached, and the report's speeds and phases are from it. Then each tool
records a run of its own, since tools slow the program, and for as long as the interval of its
shares demands. The report says how long that was, and why. Ctrl-C keeps the runs that are finished.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the kind to `profile`."""
    of = workloads.known(project)
    parser = verbs.add_parser(
        "train",
        help="a training run of the project: phases, layers, what could be gained",
        description="Profile real training and rank where its time goes, by phase and by whose "
        "code it is.",
        epilog=(of.EXAMPLES if of else "")
        + _ABOUT
        + exits.told(
            good="the report is written",
            cannot_tell="also where the training itself fails",
            interrupted="the report is written, marked incomplete",
        ),
    )
    if of is None:
        path = project.workloads / "options.py"
        missing(
            parser, f"{path} would name the project's training runs, and is not there; "
            "`rlox-opt profile script` takes any program"
        )  # fmt: skip
        return
    add_arguments(parser, project)
    profile_several.add_arguments(parser, of)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Profile as asked; returns the exit code."""
    of = workloads.known(arguments.project)
    assert of is not None  # or `missing` had run
    job = job_of(arguments)
    for package in ("rich", "torch"):
        if importlib.util.find_spec(package) is None:
            name = "rlox-opt" if package == "rich" else package
            raise UsageError(f"{package} is not installed: pip install {name}")
    if profile_several.asked(arguments, of):
        return profile_several.run(arguments, job, of)
    from rlox_opt.sampling.driver import profile
    from rlox_opt.system.process import ChildError
    from rlox_opt.system.progress import reporter

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also keeps what is finished
    try:
        with reporter() as progress:
            findings = profile(arguments.project, job, progress)
            progress.begin("report")
            folder = write(arguments.project, findings, arguments.out)
            progress.end(str(folder))
    except ChildError as error:
        say(f"rlox-opt profile train: the plain run failed: {error}", stderr=True)
        return CANNOT_TELL
    if arguments.json:
        print(json.dumps(findings.report, indent=1))
    else:
        from rlox_opt.views.terminal import show

        show(findings.report, folder)
    return 0 if findings.report["complete"] else INTERRUPTED


def write(project: Project, findings: Findings, out: Path | None) -> Path:
    """Write the report's folder, whole or not at all; returns its path.

    Without `out` it is `profiles/<date>_<machine>_<algo>`, with -2, -3, … if that is there already.

    Raises:
        NotWrittenError: it cannot be written there; it lies in the temporary folder.
    """
    from rlox_opt.system.machine import slug

    report = findings.report
    name = f"{report['date']}_{slug(report['machine'])}_{report['algo']}"
    target = FOLDER / name if out is None else out
    try:
        return _written(project, findings, target, elsewhere=out is None)
    except OSError as error:
        failed = NotWrittenError(target, error)
    try:
        kept = Path(tempfile.gettempdir()) / f"rlox-opt-kept-{secrets.token_hex(4)}_{name}"
        failed.instead = f"; the report is in {_written(project, findings, kept)}"
    except OSError:
        failed.keeping(json.dumps(report, indent=1) + "\n")
    raise failed


def _written(
    project: Project, findings: Findings, target: Path, *, elsewhere: bool = False
) -> Path:
    """Write the folder `target`; where that is taken, if it may lie `elsewhere`, the next free."""
    import rlox_opt.views.report_folder
    from rlox_opt.history import condensed, sides
    from rlox_opt.system.ending import not_interrupted

    report = findings.report
    with scratch(target.parent) as part, not_interrupted():
        rlox_opt.views.report_folder.write(
            part, report, findings.samples, findings.spans, findings.torch_events
        )
        if source := report["layer_source"]:
            text = sides.installed(project)
            kept = condensed.profile(findings.samples[source], findings.self_seconds, text)
            write_file(part / sides.PROFILE, json.dumps(asdict(kept)))
        for candidate in _candidates(target) if elsewhere else [target]:
            # Renaming fails on a folder that is there and not empty.
            with contextlib.suppress(OSError):
                return part.rename(candidate)
    raise FileExistsError("is there already, and is not overwritten")


def _candidates(target: Path) -> Iterator[Path]:
    yield target
    for number in range(2, 1000):
        yield target.with_name(f"{target.name}-{number}")
