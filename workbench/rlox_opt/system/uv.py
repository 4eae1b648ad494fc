"""All calls of uv, which resolves requirements, makes environments, builds and installs wheels.

uv uses the user's cache and settings. Package indexes that only pip is configured with are passed
on to uv. No interpreter is downloaded.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from rlox_opt.system.commands import Done, run
from rlox_opt.system.usage import UsageError

# Variables of this process's Python that must not reach another.
_OURS = dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"), "")
_SETTINGS = {
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_PROGRESS": "1",
    "NO_COLOR": "1",  # errors are recognised by their words
    "FORCE_COLOR": "",
}
# pip's settings for package sources, each with the uv variable of the same meaning.
_PIPS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
_MOST_OF_A_REASON = 600  # characters
# uv's words around the reason why requirements contradict each other.
_CEREMONY = re.compile(
    r"No solution found when resolving (?:\w+ )*dependencies(?: for [^:]*)?:?(?: cause:)? Because "
    r"|, we can conclude that (?:your|the) requirements are unsatisfiable\.?"
)


def home() -> Path:
    """The user's home; "~", which does not exist, for a user without one."""
    return Path(os.path.expanduser("~"))  # noqa: PTH111  # pathlib's raises an error there


def find() -> str:
    """The path of uv. Raises UsageError without one."""
    with contextlib.suppress(ImportError, FileNotFoundError):
        import uv

        return str(uv.find_uv_bin())
    if path := shutil.which("uv"):
        return path
    raise UsageError("uv, which makes environments, is not installed: pip install rlox-opt")


def uv(
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    limit_s: float = 3600.0,
) -> Done:
    """Run uv in `cwd`, with `env` added to the variables that it always gets. Raises UsageError
    without uv."""
    return run([find(), *arguments], cwd, {**environment(), **(env or {})}, limit_s=limit_s)


def environment() -> dict[str, str]:
    """The variables that uv, and what it starts, get in addition to this process's."""
    return {**_of_pip(), **_SETTINGS, **_OURS}


def reason(done: Done) -> str:
    """Why uv failed, as one line from its output."""
    if done.late:
        return f"it did not end within {done.seconds:.0f} s"
    lines = [re.sub(r"^[\s×╰─▶├│]+", "", line).strip() for line in done.output.splitlines()]
    told = " ".join(line for line in lines if line and not line.startswith(("warning:", "hint:")))
    # The resolved packages stand before the error.
    told = told[max(told.find("error:"), 0) :].removeprefix("error:").strip()
    told = _CEREMONY.sub("", told)
    if len(told) > _MOST_OF_A_REASON:  # what failed is at the beginning, the reason at the end
        half = _MOST_OF_A_REASON // 2
        told = f"{told[:half]} … {told[-half:]}"
    return told or f"uv ended with status {done.status} and said nothing"


def _of_pip() -> dict[str, str]:
    """pip's settings for indexes, certificates and proxies, for uv, which does not read them. Empty
    if uv has settings of its own."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config")
    files = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home() / ".pip/pip.conf"]
    files += [settings / "pip" / "pip.conf", Path(os.environ.get("PIP_CONFIG_FILE") or os.devnull)]
    own = [settings / "uv" / "uv.toml", Path("/etc/uv/uv.toml")]
    if any(path.is_file() for path in own) or {"UV_CONFIG_FILE", "UV_INDEX_URL"} & {*os.environ}:
        return {}
    parser = configparser.ConfigParser(interpolation=None)
    with contextlib.suppress(configparser.Error, UnicodeDecodeError):
        parser.read(files, encoding="utf-8")
    told = {}
    for name, variable in _PIPS.items():
        pips = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
        if value := pips or parser.get("global", name, fallback=""):
            separator = "," if name == "find-links" else " "
            if variable not in os.environ:
                told[variable] = separator.join(value.split())
    return told
