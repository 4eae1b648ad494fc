"""`rlox-opt profile ppo --nproc N --vector async`: a trainer in several processes."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from rlox_opt.cli import profile_script
from rlox_opt.sampling import workloads
from rlox_opt.system.exits import CANNOT_TELL
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that make it several processes, and those of a run of several."""
    add = parser.add_argument_group("training in several processes").add_argument
    add("--nproc", type=int, metavar="N", help="PPO: train in N processes, by torchrun")
    add(
        "--vector",
        choices=("sync", "async"),
        help="Gymnasium's vector environment: all in one process, or each in one of its own",
    )
    add(
        "--serial",
        action="store_true",
        help="train in one process as well, and tell what the processes cost",
    )
    profile_script.add_recording(parser)


def asked(arguments: argparse.Namespace) -> bool:
    """Whether several processes are asked for. What would be ignored is refused."""
    several = arguments.nproc is not None or arguments.vector is not None
    if arguments.serial and not several:
        arguments.parser.error("--serial: is one process beside several; add --nproc or --vector")
    for option, name in (_OF_ONE if several else _OF_SEVERAL).items():
        if getattr(arguments, name) != arguments.parser.get_default(name):
            other = "one process" if several else "several processes"
            hint = "leave it out" if several else "add --nproc or --vector"
            arguments.parser.error(f"{option}: is of a profile of {other}; {hint}")
    return several


def run(arguments: argparse.Namespace, job: Job) -> int:
    """Profile the training as any other program; returns the exit code."""
    from rlox_opt.sampling.driver import environment

    try:
        with scratch() as folder:
            spec = replace(job.spec, folder=str(folder))
            path = str(spec.save())
            of = workloads.known(arguments.project)
            assert of is not None
            command = _command(arguments, of.SEVERAL, path, spec.trainer["n_envs"])
            serial = None
            if arguments.serial:
                vector = "sync" if arguments.vector == "async" else arguments.vector
                serial = [sys.executable, "-m", of.SEVERAL, path, vector or "native"]
            return profile_script.profile(
                command, spec.algo, arguments, environment(spec), serial=serial
            )
    except UsageError as error:
        arguments.parser.error(str(error))
        return CANNOT_TELL


def _command(arguments: argparse.Namespace, module: str, spec: str, n_envs: int) -> list[str]:
    nproc = 1 if arguments.nproc is None else arguments.nproc
    words = [spec, arguments.vector or "native"]
    if nproc < 1:
        raise UsageError(f"--nproc {nproc}: trains nowhere; use 1 or more")
    if nproc == 1:
        return [sys.executable, "-m", module, *words]
    if arguments.algo != "ppo":
        raise UsageError(f"--nproc {nproc}: {arguments.algo.upper()} trains in one; use ppo")
    if arguments.collector == "async":
        raise UsageError(f"--nproc {nproc}: --collector async trains in one; use sync")
    if n_envs % nproc:
        raise UsageError(
            f"--nproc {nproc}: the processes share {n_envs} environments; use --n-envs "
            f"{-(-n_envs // nproc) * nproc}"
        )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, "--nproc-per-node", str(nproc), "-m", module, *words]
