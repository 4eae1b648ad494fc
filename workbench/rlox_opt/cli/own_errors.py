"""How the command line ends where an exception reaches its top: one line on stderr, an exit code,
and of an error of rlox-opt itself a file with the traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import shutil
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from rlox_opt import Out
from rlox_opt.project.project import Project
from rlox_opt.system.exits import CANNOT_TELL, INTERRUPTED, OWN_ERROR
from rlox_opt.system.files import NotReadError, NotWrittenError
from rlox_opt.system.output import say
from rlox_opt.system.usage import UsageError

# What only writing meets. It may come without a name: a full disk shows when a file is flushed.
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_LONGEST = 1000  # of what is told
# What may be missing from an installation, and what pip brings it with.
_BROUGHT_BY = {
    "rich": "rlox-opt",
    "asv_runner": "rlox-opt",
    "torch": "torch",
    "gymnasium": "gymnasium",
}


def ended(error: BaseException, prog: str, words: Sequence[str]) -> int:
    """Tell what ended the verb `prog`, called with `words`; returns the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, (UsageError, NotReadError)):
        return _say(prog, str(error), CANNOT_TELL)
    if isinstance(error, ModuleNotFoundError):
        missing = (error.name or "").partition(".")[0]
        if brought_by := _BROUGHT_BY.get(missing):
            told = f"{missing} is not installed: pip install {brought_by}"
            return _say(prog, told, CANNOT_TELL)
    if isinstance(error, NotWrittenError):
        _say(prog, str(error))
        print(error.unkept, end="", flush=True)
        if isinstance(sys.stdout, Out) and sys.stdout.failed:
            print(error.unkept, end="", file=sys.stderr)
        return OWN_ERROR
    if isinstance(error, shutil.Error):  # of copytree: several, of which one will do
        _, path, why = error.args[0][0]
        return _say(prog, f"cannot write {path}: {why}")
    if isinstance(error, OSError) and (where := _where(error)):
        # Only what somebody has named is ever too long.
        code = CANNOT_TELL if error.errno == errno.ENAMETOOLONG else OWN_ERROR
        return _say(prog, f"cannot {where}: {error.strerror}", code)
    what = one_line(traceback.format_exception_only(error)[-1])
    path = _kept(error, words)
    where = f"the traceback is in {path}; report it with that file" if path else "report it"
    return _say(prog, f"an error of rlox-opt itself, {what}; {where}")


def _say(prog: str, text: str, code: int = OWN_ERROR) -> int:
    say(f"{prog}: {one_line(text)}", stderr=True)
    return code


def one_line(text: str) -> str:
    """The text as one line; of a long one, its two ends."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"


def _where(error: OSError) -> str:
    """What cannot be done with what; nothing where that is not known."""
    doing = "write" if error.errno in _OF_WRITING else "use"
    if error.filename is not None:
        return f"{doing} {os.fsdecode(error.filename)}"
    if doing == "write":
        return "write"
    if isinstance(error, FileNotFoundError) and not os.path.exists("."):  # noqa: PTH110
        return "use the current folder"
    return ""


def _build() -> Mapping[str, Any] | None:
    """How the measured package was built; None where that cannot be asked."""
    with contextlib.suppress(Exception):
        return Project.here().installed.build_info()
    return None


def _kept(error: BaseException, words: Sequence[str]) -> str | None:
    """The file that now holds the traceback, and what it takes to find the fault; None where it
    cannot be written."""
    with contextlib.suppress(Exception):
        about = {
            "command": ["rlox-opt", *words],
            "rlox-opt": metadata.version("rlox-opt"),
            "build": _build(),
            "python": sys.version,
            "platform": platform.platform(),
        }
        text = "".join(f"{name}: {value!r}\n" for name, value in about.items())
        text += "\n" + "".join(traceback.format_exception(error))
        descriptor, path = tempfile.mkstemp(prefix="rlox-opt-error-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    return None
