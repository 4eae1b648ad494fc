"""rlox-opt in this process: what it prints and returns, without the second it takes to start."""

import contextlib
import io
from subprocess import CompletedProcess

from rlox.opt.cli import main


def rlox_opt(*arguments: object) -> CompletedProcess[str]:
    """Its exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
