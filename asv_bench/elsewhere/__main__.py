"""`python -m asv_bench.elsewhere`: measures other projects, unmodified and without configuration.
Are their known slowdowns found? Is anything else flagged? How long does it take? And what do the
tools say that the projects themselves use?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rlox_opt.project import calibration
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED
from rlox_opt.system.files import NotReadError
from rlox_opt.system.machine import commit
from rlox_opt.system.progress import reporter
from rlox_opt.system.usage import UsageError

from asv_bench.elsewhere import trials
from asv_bench.elsewhere.installed import RloxOpt
from asv_bench.elsewhere.projects import LIST, Project, load
from asv_bench.elsewhere.rivals import RIVALS
from asv_bench.elsewhere.tables import tables
from asv_bench.elsewhere.trials import FOLDER, Trials, clone
from asv_bench.injected.journal import Journal, Row, Step
from asv_bench.injected.tools import ToolError
from asv_bench.project import PROJECT

_WHAT = ("first", "pair", "unchanged", "why", "bisect", "record")
_EXAMPLES = """\
examples:
  python -m asv_bench.elsewhere --clones ~/src        all of it; some four hours
  python -m asv_bench.elsewhere --only networkx --what pair bisect
  python -m asv_bench.elsewhere --what unchanged --tool rlox-opt

rlox-opt is built and installed as a wheel, from the commit that is checked out, and run as a
command in clones of ours. A clone is made from the one of that name in --clones, or else fetched.
Every step is noted at once under target/elsewhere/: after a Ctrl-C the same command goes on where
it was. A run that ends leaves a record in asv_bench/record/, with what failed and why; `rlox-opt
publish` shows the newest. Run it when nothing else runs. It needs the network, for what the
projects require, and cargo for those in Rust.

Exit codes: 0 measured, 1 some steps failed (they are named, and tried again by the same command),
2 asked wrongly or could not measure, 130 interrupted (the tables of what there is, are printed).
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python -m asv_bench.elsewhere", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = top.add_argument
    add("--clones", metavar="FOLDER", type=Path, help="of the projects, each by its name (none)")
    add("--list", metavar="FILE", type=Path, default=LIST,
        help="of the projects (the one beside this program)")  # fmt: skip
    add("--only", metavar="NAME", nargs="+", default=[], help="projects (all)")
    add("--what", choices=_WHAT, nargs="+", default=_WHAT, help="(all)")
    add("--tool", choices=("rlox-opt", "rival", "both"), default="both",
        help="what is run: ours, or what the project has of its kind (both)")  # fmt: skip
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    top = parser()
    arguments = top.parse_args(argv)
    try:
        return _run(arguments)
    except (NotReadError, UsageError, ToolError) as problem:
        top.exit(CANNOT_TELL, f"{top.prog}: {problem}\n")


def _run(arguments: argparse.Namespace) -> int:
    every = load(arguments.list)
    chosen = _chosen(every, arguments.only)
    if arguments.clones and not arguments.clones.is_dir():
        raise UsageError(f"--clones {arguments.clones}: is no folder; leave it out to fetch them")
    measured, (at, dirty) = _workbench(), commit(PROJECT.root)
    journal = Journal(FOLDER / f"{measured[:12]}.jsonl", trials.BEARABLE)
    steps: list[Step] = []
    interrupted = False
    with reporter() as progress:
        try:
            progress.begin("rlox-opt, as a wheel")
            rlox_opt = RloxOpt.install(FOLDER / "installed" / measured[:12])
            progress.end("installed")
            for project in chosen:
                progress.begin(f"clone of {project.name}")
                try:
                    ours = clone(project, arguments.clones)
                except ToolError as error:
                    progress.end(f"failed: {error}")
                    steps += _impossible(Trials(project, Path(), rlox_opt).steps(), f"{error}")
                else:
                    progress.end("ready")
                    steps += Trials(project, ours, rlox_opt).steps()
            steps = [step for step in steps if _wanted(step, arguments)]
            journal.run(steps, progress)
        except KeyboardInterrupt:
            interrupted = True
    rows = [row for step in steps if (row := journal.last(step.key))]
    print("\n".join(tables(rows)))
    failures = [*journal.failures(steps)]
    for title, why in failures:
        print(f"{title}: failed: {why}", file=sys.stderr)
    if interrupted:
        return INTERRUPTED
    own = {
        project.name: {"url": project.url, "asv": project.asv.why if project.asv else None}
        for project in chosen
    }
    told = json.dumps(rows)
    for folder in (PROJECT.root, sys.base_prefix, Path.home()):  # reasons contain paths
        told = told.replace(f"{folder}/", "")
    facts = {"commit": at, "dirty": dirty, "workbench": measured, "projects": own}
    path, _ = calibration.keep(PROJECT, "elsewhere", **facts, rows=json.loads(told))
    print(f"\n{path}")
    return DIFFERENCE if failures else GOOD


def _chosen(every: Sequence[Project], only: Sequence[str]) -> list[Project]:
    names = [project.name for project in every]
    for name in only:
        if name not in names:
            raise UsageError(f"--only: {name!r} is no project of the list: {', '.join(names)}")
    return [project for project in every if not only or project.name in only]


def _impossible(steps: Iterable[Step], why: str) -> Iterator[Step]:
    """The steps of a project that could not be cloned: each fails with the reason."""

    def does() -> Row:
        raise ToolError(why)

    for step in steps:
        yield replace(step, does=does)


def _wanted(step: Step, arguments: argparse.Namespace) -> bool:
    by = "rival" if step.tool in ("asv", *RIVALS) else "rlox-opt"
    return step.key["what"] in arguments.what and arguments.tool in (by, "both")


def _workbench() -> str:
    """git's tree of the workbench's package at HEAD. Raises UsageError if the files differ from
    HEAD, or if there is no commit."""
    repository = PROJECT.commits.repository()
    changed = repository.run("status", "--porcelain", "--", "workbench/rlox_opt").strip()
    if changed:
        raise UsageError("workbench/rlox_opt has changes that are in no commit; commit them first")
    return repository.run("rev-parse", "HEAD:workbench/rlox_opt").strip()


if __name__ == "__main__":
    sys.exit(main())
