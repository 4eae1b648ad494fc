"""A process that runs the commands of a suite for one build of a project.

It is started as `python rlox_opt_commands_side.py SETTINGS`, where SETTINGS is JSON: `{"commands":
{name: [words]}, "files": folder or null, "env": {…}, "timeout": seconds, "sides": [{"folder":
…}]}`.

It answers the commands of `rlox_opt_side`. A call lasts from the start of the suite's command until
the command and all processes it started have ended. Each call has a new folder: an empty one, or a
copy of the suite's files. PATH begins with the build's scripts and the interpreter's folder;
PYTHONPATH begins with the build's modules.

The process runs the project's own Python, so this file needs the standard library alone, and
Python 3.8 or later.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlox_opt_processes import of_children, serve
from rlox_opt_side import pads, pin

_PR_SET_CHILD_SUBREAPER = 36
_TAIL_LINES, _TAIL_BYTES = 6, 1 << 14
_LONGEST_SHEBANG = 127  # bytes that Linux reads


class Arena:
    """A build, and the commands to run with it."""

    pin = staticmethod(pin)

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        files: str | None,
        env: Mapping[str, str],
        timeout: float | None,
        sides: Sequence[Mapping[str, Any]],
        **_: Any,
    ) -> None:
        (side,) = sides
        self._commands = commands
        self._files = files
        self._timeout = timeout
        self._folder = os.path.realpath(side["folder"])
        self._env = {**_environment(self._folder), **env}
        self._prepared: list[str] = []
        self._under: list[str] = []
        self._pads: list[bytearray] = []

    def all(self, beginning: str) -> list[dict[str, Any]]:
        """The commands. Their type is asv's timeraw, since each call is a process of its own."""
        there = {name: ["timeraw", None, self._timeout] for name in self._commands}
        return [{"benchmarks": there, "broken": {}}]

    def builds(self) -> list[dict[str, Any]]:
        """Commands say nothing of how their build was made."""
        return [{}]

    def load(self, number: int, name: str, seed: int) -> None:
        """Nothing is imported here."""

    def prepare(
        self, number: int, name: str, seed: int, alone: int | None, cache: str | None
    ) -> int:
        """Run a command once, to see that it works and so that its bytecode is compiled. Runs do
        not depend on earlier ones, so there is nothing else to prepare."""
        if name not in self._commands:
            raise LookupError(f"the suite has no {name} here")
        self._prepared = self._found(self._commands[name])
        self._run()
        return 0

    def forget(self, seed: int) -> None:
        """Allocate other memory, so that later processes are copied from another layout."""
        self._pads = pads(seed)

    def time(self, number: int, calls: int, warm: int) -> tuple[float, float, float]:
        """Seconds of the runs; seconds with their folders; processor seconds of all processes."""
        start, busy = time.perf_counter(), of_children()
        seconds = sum(self._run() for _ in range(calls))
        return seconds, time.perf_counter() - start, of_children() - busy

    def call(self, n: int) -> None:
        """Run the command `n` times."""
        self.time(0, n, 0)

    def under(self, words: Sequence[str]) -> None:
        """Put these words, such as a profiler's, before the command from now on."""
        self._under = list(words)

    def value(self) -> float:
        """Raises ValueError: a command has no value."""
        raise ValueError("a command is timed, and tells no number")

    def _found(self, words: Sequence[str]) -> list[str]:
        program, *rest = words
        if program in ("python", "python3"):
            return [sys.executable, *rest]
        path = program if os.sep in program else shutil.which(program, path=self._env["PATH"])
        if path is None:
            raise LookupError(f"no program {program} is on PATH; the package installs none")
        return [path, *rest]

    def _words(self) -> list[str]:
        """The words to run. A profiler gets the interpreter of a Python script and not the script,
        which may first start a shell to find the interpreter."""
        if self._under and _is_python(Path(self._prepared[0])):
            return [*self._under, sys.executable, *self._prepared]
        return [*self._under, *self._prepared]

    def _run(self) -> float:
        """Seconds of one run. If it fails, raises RuntimeError with its last lines of output."""
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as above:
            folder = Path(above, "run")
            if self._files is None:
                folder.mkdir()
            else:
                shutil.copytree(self._files, folder, symlinks=True)
            with tempfile.TemporaryFile(dir=above) as output:
                start = time.perf_counter()
                try:
                    process = subprocess.Popen(
                        self._words(),
                        cwd=folder,
                        env=self._env,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                except OSError as error:
                    raise RuntimeError(f"does not start: {error}") from None
                status = process.wait()
                _wait_for_the_rest()
                seconds = time.perf_counter() - start
                if status:
                    raise RuntimeError("\n".join([_told(status), *_last_lines(output)]))
        return seconds


def _environment(folder: str) -> dict[str, str]:
    """The environment variables for the commands of the build in `folder`."""
    scripts = Path(folder, "bin")
    _by_this_interpreter(scripts)
    own = {name: of for name, of in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths = {
        "PATH": [f"{scripts}", f"{Path(sys.executable).parent}", own.get("PATH", os.defpath)],
        "PYTHONPATH": [folder, own.get("PYTHONPATH", "")],
    }
    return {**own, **{name: os.pathsep.join(filter(None, of)) for name, of in paths.items()}}


def _by_this_interpreter(scripts: Path) -> None:
    """Make the build's Python scripts start this interpreter, which has what they import. The
    folder is a copy of the build, so that it may be changed."""
    for path in sorted(scripts.iterdir()) if scripts.is_dir() else ():
        content = path.read_bytes() if path.is_file() else b""
        lines = content.split(b"\n", 3)
        if lines[0].startswith(b"#!") and b"python" in lines[0]:
            rest = content[len(lines[0]) + 1 :]
        elif lines[0] == b"#!/bin/sh" and len(lines) > 3 and lines[1].startswith(b"'''exec'"):
            rest = lines[3]  # the form in which installers name an interpreter whose path is long
        else:
            continue
        first = b"#!" + os.fsencode(sys.executable)
        if len(first) > _LONGEST_SHEBANG or b" " in first:
            name = re.sub(rb'(["$`\\])', rb"\\\1", os.fsencode(sys.executable))
            first = b"#!/bin/sh\n'''exec' \"" + name + b'" "$0" "$@"\n\' \'\'\''
        path.write_bytes(first + b"\n" + rest)


def _is_python(path: Path) -> bool:
    """Whether a program begins with a Python interpreter, as an installer or this file writes
    it."""
    with path.open("rb") as file:
        first, _, second = file.read(4 * _LONGEST_SHEBANG).partition(b"\n")
    if first.startswith(b"#!") and b"python" in first:
        return True
    return first == b"#!/bin/sh" and second.startswith(b"'''exec'")


def _wait_for_the_rest() -> None:
    """Wait for processes that a command started and left running."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _told(status: int) -> str:
    if status < 0:
        return f"the command is ended by {signal.Signals(-status).name}"
    return f"the command ends with exit status {status}"


def _last_lines(output: Any) -> list[str]:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _TAIL_BYTES))
    text: str = output.read().decode(errors="replace")
    return [line.rstrip() for line in text.strip().splitlines()[-_TAIL_LINES:]]


def main(settings: str) -> None:
    """Answer the commands on stdin until it ends."""
    if sys.platform == "linux":  # processes that a command leaves running become children of this
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    serve(
        lambda: Arena(**json.loads(settings)),
        lambda arena, error: str(error).replace(arena._folder + os.sep, ""),
    )


if __name__ == "__main__":
    main(sys.argv[1])
