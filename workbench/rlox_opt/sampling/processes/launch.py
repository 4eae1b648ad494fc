"""Starts a program whose Python processes all record themselves, and a sampler that watches them.

The first process waits at a gate until the sampler is ready. The program has a session of its own,
so Ctrl-C in the terminal reaches the driver alone, which passes it on once. What was recorded until
then is read as any other run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from rlox_opt.sampling.driver import Progress
from rlox_opt.sampling.processes import samplers
from rlox_opt.sampling.processes.format import RUN, SCHEMA, Clock
from rlox_opt.sampling.processes.inside.rlox_opt_segments import (
    FOLDER,
    GATE,
    OPTIONS,
    read_clock,
    time_namespace,
)
from rlox_opt.sampling.processes.run import About, keys
from rlox_opt.sampling.processes.watcher import Watcher
from rlox_opt.system.ending import not_interrupted
from rlox_opt.system.files import write
from rlox_opt.system.machine import machine
from rlox_opt.system.process import end_group, group_lives, signal_group

INSIDE = Path(__file__).with_name("inside")
# oneDNN then writes the names of code that it compiles at run time into a file that perf reads.
_NAMED = {"ONEDNN_JIT_PROFILE": "3"}  # 1: for VTune, as by default; 2: for perf
_GRACE_S = 40.0  # for a program to end after Ctrl-C; torchrun gives its ranks 30 of them
_HELPERS_S = 2.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Options:
    """What is recorded of a run.

    Attributes:
        from_s: seconds of the run after which spans and samples are kept.
        for_s: for how many seconds they are kept; None: to the end.
        every: spans of one in so many seconds are kept (1: of all).
        torch_s: seconds, from `from_s` on, for which torch.profiler records operators.
        segment_bytes: the size of a file of a process.
        segments: the number of files of a process that are kept, the last ones.
        ptrace: whether processes allow py-spy to read them.
        frames: whether processes record the lines of Python that they are at.
    """

    from_s: float = 0.0
    for_s: float | None = None
    every: int = 1
    torch_s: float = 0.0
    segment_bytes: int = 4 << 20
    segments: int = 24
    ptrace: bool = False
    frames: bool = False


@dataclass
class Exit:
    """How the program ended: its exit status, and whether Ctrl-C ended it."""

    status: int
    interrupted: bool


class NotStartedError(OSError):
    """The command could not be started."""


def launch(
    command: Sequence[str],
    folder: Path,
    options: Options,
    sampler: samplers.Sampler | None,
    progress: Progress,
    output: IO[str] | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: int | None = subprocess.DEVNULL,
) -> Exit:
    """Run the command to its end, or to Ctrl-C, and write into `folder` what `format` describes.

    Args:
        sampler: the sampler to run beside it; None for none.
        output: where the program's stdout goes; None: to this process's.
        environment: the program's variables; None: this process's.
        stdin: where the program's stdin comes from; None: this process's, which must be no
            terminal, since the program is in a session of its own.

    Raises:
        NotStartedError: the command cannot be started.
        OSError: the record cannot be written, or the sampler not started.
    """
    folder.mkdir(parents=True, exist_ok=True)
    clock = Clock(*read_clock())
    about = About(
        SCHEMA,
        clock,
        list(command),
        time_namespace(),
        asdict(options) | {"start_ns": clock.after_ns},
        None if sampler is None else sampler.name,
        machine(),
    )
    _write(folder, about)
    # The jobs that a shell starts in the background ignore Ctrl-C, and so does the program.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    passed_on = signal.SIGTERM if ignored else signal.SIGINT
    gate, opener = os.pipe()
    env = _NAMED if options.frames else {}
    env = env | dict(os.environ if environment is None else environment)
    paths = [str(INSIDE), *filter(None, [env.get("PYTHONPATH")])]
    env |= {
        "PYTHONPATH": os.pathsep.join(paths),
        FOLDER: str(folder.absolute()),
        OPTIONS: json.dumps(about.options),
        GATE: str(gate),
    }
    try:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            env=env,
            pass_fds=[gate],
            start_new_session=True,
        )
    except OSError as error:
        os.close(opener)
        raise NotStartedError(str(error)) from error
    finally:
        os.close(gate)
    try:
        try:
            if sampler is not None:
                sampler.begin(process.pid, folder, options.from_s, options.for_s)
            with contextlib.suppress(BrokenPipeError):  # the program is not Python, and has ended
                os.write(opener, b"\n")
        finally:
            os.close(opener)  # lets through all that come to the gate later
        from_ns = clock.after_ns + round(options.from_s * 1e9)
        for_ns = 1 << 62 if options.for_s is None else round(options.for_s * 1e9)
        with Watcher(process.pid, folder, from_ns, from_ns + for_ns):
            _watch(process, folder, sampler, progress, clock.after_ns)
            about.end = Clock(*read_clock())  # processes left behind are no longer waited for
    except KeyboardInterrupt:
        about.interrupted = True
    finally:
        with not_interrupted():
            if about.interrupted:
                _interrupt(process, passed_on)
            about.end = about.end or Clock(*read_clock())
            about.outlived = _drain(process)
            if about.outlived:
                signal_group(process.pid, signal.SIGTERM)
                _drain(process)
            end_group(process)
            about.status = process.returncode
            try:
                _write(folder, about)
            finally:
                if sampler is not None:
                    progress.note("writing samples")
                    sampler.end()
    return Exit(process.returncode, about.interrupted)


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    sampler: samplers.Sampler | None,
    progress: Progress,
    start_ns: int,
) -> None:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            return
        elapsed = (time.monotonic_ns() - start_ns) / 1e9
        if sampler is not None:
            sampler.poll(elapsed)
        progress.note(f"{elapsed:.0f} s, {len(keys(folder))} processes")


def _drain(process: subprocess.Popen[bytes]) -> bool:
    """Let processes that the program leaves behind, such as multiprocessing's helpers, end. Returns
    whether some did not."""
    deadline = time.monotonic() + _HELPERS_S
    while process.poll() is not None and time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):  # at most another user's are left
            return False
        # One that forks and ends during the first look hides its child from it.
        if not (group_lives(process.pid) or group_lives(process.pid)):
            return False
        time.sleep(0.02)
    return process.poll() is not None


def _interrupt(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send the whole program this signal. Its first process is ended if the signal does not end it;
    the others may still write what they recorded."""
    signal_group(process.pid, number)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        end_group(process)


def _write(folder: Path, about: About) -> None:
    write(folder / RUN, json.dumps(asdict(about), indent=1))
