"""A verb that the project has nothing for."""

from __future__ import annotations

import argparse

from rlox_opt.system.usage import UsageError


def missing(parser: argparse.ArgumentParser, why: str) -> None:
    """Make the parser's verb say `why`, whatever it is asked: what is not there, and what would
    do."""

    def run(_: argparse.Namespace) -> int:
        raise UsageError(why)

    parser.description = f"{parser.description}\n\nNothing yet: {why}."
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run, parser=parser)
