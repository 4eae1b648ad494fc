"""`rlox-opt profile train` of a run in several processes, which the project's plug-in starts."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from rlox_opt.cli import profile_recording, profile_script
from rlox_opt.sampling.workloads import Workloads
from rlox_opt.system.scratch import scratch

if TYPE_CHECKING:
    from rlox_opt.sampling.spec import Job


_OF_ONE = {"--tools": "tools", "--seconds": "seconds"}
_OF_SEVERAL = {
    "--sampler": "sampler",
    "--from": "from_s",
    "--for": "for_s",
    "--every": "every",
    "--torch": "torch_s",
}


def add_arguments(parser: argparse.ArgumentParser, of: Workloads) -> None:
    """The options that make it several processes, and those of a run of several."""
    add = parser.add_argument_group("training in several processes").add_argument
    of.add_several(add)
    add(
        "--serial",
        action="store_true",
        help="train in one process as well, and tell what the processes cost; not with --from or "
        "--for",
    )
    profile_recording.add_to(parser)


def asked(arguments: argparse.Namespace, of: Workloads) -> bool:
    """Whether several processes are asked for. What would be ignored is refused."""
    several = any(getattr(arguments, name) is not None for name in of.SEVERAL.values())
    add = f"add {' or '.join(of.SEVERAL)}"
    if arguments.serial and not several:
        arguments.parser.error(f"--serial: is one process beside several; {add}")
    for option, name in (_OF_ONE if several else _OF_SEVERAL).items():
        if getattr(arguments, name) != arguments.parser.get_default(name):
            other = "one process" if several else "several processes"
            hint = "leave it out" if several else add
            arguments.parser.error(f"{option}: is of a profile of {other}; {hint}")
    return several


def run(arguments: argparse.Namespace, job: Job, of: Workloads) -> int:
    """Profile the training as any other program; returns the exit code. Raises UsageError."""
    from rlox_opt.sampling.driver import environment

    profile_recording.check(arguments)
    with scratch() as folder:
        spec = replace(job.spec, folder=str(folder))
        path = spec.save()
        command = of.command(arguments, spec, path)
        serial = of.command(arguments, spec, path, serial=True) if arguments.serial else None
        return profile_script.profile(
            command, spec.algo, arguments, environment(spec), serial=serial
        )
