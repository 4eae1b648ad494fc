"""Runs cargo, test binaries and pytest, with their output as it comes and a time limit. At the end
all processes that they started are ended, but for those that began a session of their own."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.system import git
from rlox_opt.system.process import end_group
from rlox_opt.system.usage import UsageError

Hear = Callable[[str], None]  # is called with every line of output

_TAIL_LINES = 30
_NOT_RUN = ("--no-run", "--message-format=json-render-diagnostics")


class CannotTell(Exception):
    """The question cannot be answered here. The message says why and names the remedy; its further
    lines are output."""


class CompileError(Exception):
    """cargo did not compile it; the message is the end of its output."""


@dataclass(frozen=True)
class Done:
    """A command that has ended: exit `status`, `output` of both streams, wall `seconds`."""

    status: int
    output: str
    seconds: float
    late: bool = False  # whether it was ended at its time limit

    @property
    def tail(self) -> str:
        """The last lines of the output."""
        return "\n".join(self.output.rstrip().splitlines()[-_TAIL_LINES:])


def run(
    command: Sequence[str | Path],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    hear: Hear = lambda line: None,
    limit_s: float = 3600.0,
) -> Done:
    """Run `command` with `env` added to this process's variables, without those that redirect git.
    It is ended after `limit_s` seconds."""
    started = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env={**git.environment(), "CARGO_TERM_COLOR": "never", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C then reaches this process alone, which ends the command
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        end_group(process)

    limit = threading.Timer(limit_s, end)
    limit.daemon = True  # otherwise a Ctrl-C at this point would wait for the timer
    lines = []
    try:
        limit.start()
        assert process.stdout is not None
        with process.stdout as stdout:
            for raw in stdout:
                lines.append(raw.decode(errors="replace"))
                hear(lines[-1].strip())
        status = process.wait()
    finally:
        limit.cancel()
        end_group(process)
    return Done(status, "".join(lines), time.monotonic() - started, late.is_set())


def attempt(
    command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], limit_s: float = 3600.0
) -> Done:
    """`run` for a command of the user's: if it cannot be started, it has ended with status 127, as
    in a shell, and its output says why."""
    try:
        return run(command, cwd, env, limit_s=limit_s)
    except OSError as error:
        return Done(127, f"{error.filename}: {error.strerror}", 0.0)


def cargo() -> str:
    """The path of cargo. Raises UsageError without one."""
    path = shutil.which("cargo")
    if path is None:
        raise UsageError("cargo: is not on PATH; install Rust from https://rustup.rs")
    return path


def executable(output: str, target: str) -> Path | None:
    """The program of a target, from cargo's JSON messages among its output; None if there is
    none."""
    for line in output.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            message = json.loads(line) if line.startswith("{") else {}
            if message.get("executable") and message["target"]["name"] == target:
                return Path(message["executable"])
    return None


def compile_pairs(
    root: Path,
    crate: str,
    profile: str = "test",
    env: Mapping[str, str] | None = None,
    hear: Hear = print,
) -> Path:
    """The compiled unit tests of a crate in the checkout `root`, under a cargo profile.

    Raises:
        CompileError: they do not compile.
        UsageError: there is no cargo.
    """
    done = run(
        [cargo(), "test", "-p", crate, "--lib", "--locked", "--profile", profile, *_NOT_RUN],
        root,
        env,
        lambda line: None if line.startswith("{") else hear(line),
    )
    if made := executable(done.output, crate.replace("-", "_")):
        return made
    readable = [line for line in done.output.splitlines() if not line.startswith("{")]
    raise CompileError("\n".join(readable[-_TAIL_LINES:]))


def names_in(binary: Path) -> dict[str, str]:
    """By each optimisation that has a pair in Rust, the name of its property test."""
    listed = run([binary, "--list"], binary.parent).output
    names = (line.removesuffix(": test") for line in listed.splitlines())
    return {
        name.rpartition("::")[2].removesuffix("_twins_agree").upper(): name
        for name in names
        if name.endswith("_twins_agree")
    }


def run_one(binary: Path, name: str, folder: Path, hear: Hear, limit_s: float = 600.0) -> Done:
    """Run the one test called `name` in the folder of its crate. The status is 0 only if the test
    ran and passed."""
    done = run([binary, "--exact", name], folder, None, hear, limit_s)
    if done.status == 0 and "1 passed" not in done.output:
        raise CannotTell(f"{name}: {binary} holds no such test\n{done.tail}")
    return done
