"""`rlox-opt new`: the parts of a new optimisation, which the project's own plug-in writes."""

from __future__ import annotations

import argparse
from typing import Any, Protocol, cast

from rlox_opt.cli.missing import missing
from rlox_opt.project.project import Project
from rlox_opt.system import exits, plugins


class New(Protocol):
    """What the plug-in `new.py`, beside the project's cards, brings."""

    def describe(self, parser: argparse.ArgumentParser) -> None:
        """Give the verb its arguments and examples."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Write the parts; returns the exit code."""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "new",
        help="write the skeleton of a new optimisation",
        description="Write the parts of a new optimisation, to be filled in.",
        epilog=exits.told(good="written"),
    )
    path = project.cards / "new.py"
    if not path.exists():
        missing(parser, f"{path} would write the parts of an optimisation, and is not there")
        return
    of = cast(New, plugins.load(path))
    of.describe(parser)
    parser.set_defaults(run=of.run, parser=parser)
