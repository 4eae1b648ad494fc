"""rlox-opt in this process: what it prints and returns, without the second it takes to start; and
as a process of its own, from its first import to its end."""

import contextlib
import io
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from rlox_opt.cli.main import main

ROOT = Path(__file__).parents[2]
_SCRIPTS = tomllib.loads((ROOT / "workbench" / "pyproject.toml").read_text())["project"]["scripts"]


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
    """The installed command as a process `under` another command; it runs the lines `first` before
    anything else."""
    module, _, name = _SCRIPTS["rlox-opt"].partition(":")
    program = f"import sys\n{first}\nfrom {module} import {name}\nsys.exit({name}())"
    streams = {name: subprocess.PIPE for name in ("stdout", "stderr") if name not in more}
    command = [*under, sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, **streams, text=True, errors="replace", timeout=60, cwd=more.pop("cwd", ROOT),
        **more,
    )  # fmt: skip
