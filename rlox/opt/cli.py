"""`rlox-opt`: finds the verb and runs it. Exit codes: 0 done, 1 failed, 2 asked wrongly, 130
interrupted (what was finished is kept)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from rlox.opt import (
    bisect,
    calibrate,
    cmp,
    diff,
    gate,
    ladder,
    new,
    peers,
    profile,
    profile_diff,
    profile_script,
    publish,
    record,
    regressions,
    show,
    test,
)
from rlox.opt import list as list_
from rlox.opt.exits import INTERRUPTED
from rlox.profiling.guard import guarded

VERBS = (
    profile, profile_script, profile_diff, list_, show, test, cmp, ladder, peers, new, diff, gate,
    bisect, calibrate, record, regressions, publish,
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; `--help` has the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message.removeprefix('argument ')}\n")


class _Version(argparse.Action):
    """`--version`: the extension's, with how it was built; read only when asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from rlox._core import build_info

        build = build_info()
        features = ", ".join(build["features"]) or "baseline"
        print(f"rlox-opt {build['version']} ({build['profile']}, {features})")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = Parser(
        prog="rlox-opt", description="Measure reinforcement learning and its optimisations."
    )
    parser.add_argument("--version", action=_Version)
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add_to(verbs)
    words, rest = profile_script.split(sys.argv[1:] if argv is None else [*argv])
    if words[:2] == ["profile", "diff"]:
        words[:2] = [profile_diff.VERB]
    arguments = parser.parse_args(words)
    arguments.rest = rest
    try:
        with guarded():
            code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `head` has read what it wanted; nor may the last flush complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:  # before or after what is worth keeping
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
