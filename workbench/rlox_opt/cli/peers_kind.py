"""What the kinds of `rlox-opt peers` share: options, and the course from the first environment to
the record."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rlox_opt.plan.unfinished import write_record
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.system import exits, output
from rlox_opt.system.exits import CANNOT_TELL, INTERRUPTED
from rlox_opt.system.files import check_folder
from rlox_opt.system.numbers import whole

if TYPE_CHECKING:
    from pathlib import Path

    from rlox_opt.system.progress import Lines
    from rlox_opt.views.model import Document, Table

Record = dict[str, Any]


class Contest(Protocol):
    """What is measured: a race of trainings, or operations."""

    project: Project
    name: str
    home: Path  # where environments and unfinished rows lie
    where: Mapping[str, Any]  # of the record: its machine, among others
    untimed: str  # what is said where nothing was measured

    def install(self, progress: Lines) -> None:
        """Make the environments that are not there."""

    def time(self, runs: int, progress: Lines) -> None:
        """Measure until there are so many runs."""

    def kept(self) -> str:
        """What an interruption leaves, in a few words."""

    def left_out(self) -> list[str]:
        """A sentence for each that was, with the reason."""

    def timed(self) -> bool:
        """Whether anything was measured."""

    def record(self) -> Record:
        """All of it."""

    def forget(self) -> None:
        """Remove what was kept for an interruption."""


@dataclass(frozen=True)
class Report:
    """How a record is shown: as a table, in the words that explain it, as a document, and as
    `pictures` beside the record, by the ends of their names."""

    summary: Callable[[Record], Table]
    explained: Callable[[Record], str]
    document: Callable[[Record], Document]
    pictures: Mapping[str, Callable[[Record], str]]

    @classmethod
    def of(cls, view: Any, pictures: Mapping[str, Callable[[Record], str]] | None = None) -> Report:
        """That of a module of views."""
        return cls(view.summary, view.explained, view.document, pictures or {})

    def beside(self, record: Record) -> dict[str, str]:
        """The texts beside the record."""
        from rlox_opt.views import html, markdown

        document = self.document(record)
        drawn = {suffix: picture(record) for suffix, picture in self.pictures.items()}
        return {**drawn, ".md": markdown.text(document), ".html": html.page(document)}


def add_kind(
    kinds: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str,
    about: str,
    runs: int = 10,
) -> argparse.ArgumentParser:
    """Add a kind to `peers`, with the options that all of them have; `about` ends its --help."""
    codes = exits.told(
        cannot_tell="also where nothing was measured", interrupted="what is measured is kept"
    )
    parser: argparse.ArgumentParser = kinds.add_parser(
        name,
        help=help,
        description=f"{description}; a record, a page and Markdown under record/ of the peers.",
        epilog=about + codes,
    )
    add = parser.add_argument
    add(
        "--runs",
        type=whole(1),
        default=runs,
        metavar="N",
        help="how often all start anew (default: %(default)s)",
    )
    add("--no-record", action="store_true", help="write no record")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)
    return parser


def chosen(text: str, known: Mapping[str, Any], parser: argparse.ArgumentParser) -> list[str]:
    """The names that `--only` lists, each once; ends the program where one is not `known`."""
    asked = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in asked:
        if name not in known:
            parser.error(f"--only: is {name!r}, expected some of {', '.join(known)}")
    return asked


def conclude(
    of: Contest,
    arguments: argparse.Namespace,
    report: Report,
    finish: Callable[[Record], Record] = lambda record: record,
) -> int:
    """Install, measure, write and show as asked; returns the exit code. `finish` adds to the record
    what no run does."""
    from rlox_opt.system.progress import reporter
    from rlox_opt.views.comparison import show_table

    check_folder(of.home)
    folder = racing.records_of(of.project, of.where["machine"])
    if not arguments.no_record:
        check_folder(folder)
    try:
        with reporter() as progress:
            of.install(progress)
            of.time(arguments.runs, progress)
        for sentence in of.left_out():
            say(sentence)
        if not of.timed():
            of.forget()
            say(of.untimed)
            return CANNOT_TELL
        record = finish(of.record())
    except KeyboardInterrupt:
        say(f"{of.kept()}; the same command goes on from there")
        return INTERRUPTED
    if not arguments.no_record:
        path = write_record(record, folder, of.name, report.beside(record))
        record["record"] = str(path.relative_to(of.project.root))
    of.forget()
    if arguments.json:
        print(json.dumps(record))
    else:
        show_table(report.summary(record), report.explained(record), record.get("record"))
    return 0


def say(text: str) -> None:
    """A line of `rlox-opt peers` to stderr."""
    output.say(f"rlox-opt peers: {text}", stderr=True)
