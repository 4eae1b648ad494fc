"""What of a run of several processes is kept: the options of `profile script` and `profile train`
that say so."""

from __future__ import annotations

import argparse

from rlox_opt.system.numbers import real, whole
from rlox_opt.system.usage import UsageError


def add_to(parser: argparse.ArgumentParser) -> None:
    """The options that say what of a run is kept."""
    add = parser.add_argument_group("several processes").add_argument
    add(
        "--sampler",
        choices=("perf", "py-spy", "none"),
        help="what looks on from outside, for the layers (perf where it works, else py-spy)",
    )
    add(
        "--from",
        type=real(0, 1e6, "seconds"),
        default=0.0,
        dest="from_s",
        metavar="S",
        help="keep what is after so many seconds of the run (0)",
    )
    add(
        "--for",
        type=real(0, 1e6, "seconds"),
        dest="for_s",
        metavar="S",
        help="keep so many seconds (to the end; of a very long run only the last part)",
    )
    add(
        "--every",
        type=whole(1),
        default=1,
        metavar="N",
        help="of N seconds keep the spans of one (1: of all)",
    )
    add(
        "--torch",
        type=real(0, 1e6, "seconds"),
        default=0.0,
        dest="torch_s",
        metavar="S",
        help="record torch's operators for so many seconds, which slows them (0)",
    )


def check(arguments: argparse.Namespace) -> None:
    """Raises UsageError where nothing would be kept, or too little for `--serial`."""
    if arguments.for_s is not None and arguments.for_s < 1:
        raise UsageError(f"--for {arguments.for_s:g}: keeps nothing; use 1 or more")
    if arguments.serial in (None, False):
        return
    for option, seconds in (("--from", arguments.from_s), ("--for", arguments.for_s)):
        if seconds:  # the times of the two runs would be those of two windows
            raise UsageError(
                f"{option} {seconds:g}: keeps a part of a run, and --serial compares whole runs; "
                "leave one of the two out"
            )
