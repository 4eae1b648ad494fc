"""A process that has imported rlox-opt and forks for each command line. So thousands of them take
only seconds, each in a process of its own, with limits of time and memory.

As a program, `python server.py REPOSITORY` answers requests on stdin, a line of JSON each.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import workbench

LIMIT_S = 120.0
_MEMORY = 2 << 30  # beyond what the server has: who reads /dev/zero to its end shall find one
_MOST_READ = 1 << 20
REPORT = "a report of"  # as the first word: no verb, but what one does with the folder behind it
_IMPORTED = (
    "rlox_opt.system.progress", "rlox_opt.views.terminal", "rlox_opt.views.card",
    "rlox_opt.history.sides", "rlox_opt.views.site", "rlox_opt.views.report_folder",
    "rlox_opt.plan.testing.answers",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """How a command line ended; `code` is None if its time ran out."""

    code: int | None
    out: str
    err: str


class Server:
    """A running server, for the rlox-opt of one repository."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self._process = subprocess.Popen(
            [sys.executable, str(workbench.HERE / "server.py"), str(repository)],
            env=workbench.environment(repository),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: list[str], folder: Path, **env: str) -> Done:
        """Run `rlox-opt WORDS`, with `folder/cwd`, `folder/home` and `folder/tmp` as its own."""
        for name in ("cwd", "home", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([words, str(folder), env]) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()


def _serve(repository: Path) -> None:
    workbench.relocate(repository)
    import importlib

    run = workbench.rlox_opt()
    importlib.import_module("rlox_opt.cli.main")
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        words, folder, env = json.loads(line)
        print(json.dumps(_forked(run, words, Path(folder), env)), flush=True)


def _forked(run: Any, words: list[str], folder: Path, env: Mapping[str, str]) -> dict[str, Any]:
    if words[:1] == [REPORT]:
        run, words = _report, words[1:]
    said = [folder / "stdout", folder / "stderr"]
    pid = os.fork()
    if not pid:
        _child(run, words, folder, env, said)
    until = time.monotonic() + LIMIT_S
    code = None
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # and all that it started
    if code is None:
        os.waitpid(pid, 0)
    texts = [path.read_bytes()[-_MOST_READ:].decode(errors="replace") for path in said]
    for path in said:
        path.unlink()
    return {"code": code, "out": texts[0], "err": texts[1]}


def _report() -> int:
    """What `profile SCRIPT` does with a run's files, in the folder that it gets."""
    from rlox_opt.project.project import Project
    from rlox_opt.sampling.processes.report import report
    from rlox_opt.sampling.processes.run import read_run

    report(read_run(Path(sys.argv[1])), Path("trace.json"), Project.here())
    return 0


def _child(
    run: Any, words: list[str], folder: Path, env: Mapping[str, str], said: list[Path]
) -> None:
    """What the interpreter does for a console script, in a fork."""
    code: Any = 1
    os.setsid()
    try:
        os.chdir(folder / "cwd")
        os.environ.update(env, HOME=str(folder / "home"), TMPDIR=str(folder / "tmp"))
        for number, path in ((1, said[0]), (2, said[1])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = sys.__stdout__ = _stream(1, "strict")
        sys.stderr = sys.__stderr__ = _stream(2, "backslashreplace")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
        sys.argv = ["rlox-opt", *words]
        code = run()
    except SystemExit as stopped:
        code = stopped.code
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _stream(number: int, errors: str) -> TextIO:
    """A stream, opened as the interpreter does it."""
    return open(number, "w", encoding="utf-8", errors=errors, closefd=False)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
