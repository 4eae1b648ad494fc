"""Runs rlox-opt in this process, without the second that starting takes; and as a process of its
own, from its first import to its end."""

import contextlib
import io
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import distribution
from subprocess import CompletedProcess
from typing import Any

from rlox_opt.cli.main import main
from rlox_opt.system import exits

_START = distribution("rlox-opt").entry_points["rlox-opt"]


def rlox_opt(*arguments: object) -> CompletedProcess[str]:
    """Its exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def started(
    *arguments: str, first: str = "", under: Sequence[str] = (), **more: Any
) -> CompletedProcess[str]:
    """The installed command as a process `under` another command. The lines `first` are executed
    before anything else."""
    program = f"import sys\n{first}\nfrom {_START.module} import {_START.attr}\n"
    program += f"sys.exit({_START.attr}())"
    streams = {name: subprocess.PIPE for name in ("stdout", "stderr") if name not in more}
    command = [*under, sys.executable, "-c", program, *arguments]
    return subprocess.run(command, **streams, text=True, errors="replace", timeout=200, **more)


def assert_tells_codes(verb: str, may_differ: bool) -> None:
    """Check that the verb's help ends with its exit codes, in the common words."""
    _, _, told = rlox_opt(*verb.split(), "--help").stdout.partition("exit codes:\n")
    lines = told.replace("\n       ", " ").splitlines()  # those that went on, whole again
    expected = {c: m for c, m in exits.MEANINGS.items() if c != exits.DIFFERENCE or may_differ}
    assert len(lines) == len(expected)
    for line, (code, meaning) in zip(lines, expected.items(), strict=True):
        assert line == f"  {code:<5}{meaning}" or line.startswith(f"  {code:<5}{meaning}: ")
