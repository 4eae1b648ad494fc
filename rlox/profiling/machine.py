"""Where a profile was taken: machine, versions and commit; never a host's or user's name."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from rlox._core import build_info
from rlox.profiling import git

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "numpy", "gymnasium", "py-spy", "scalene")


def machine() -> dict[str, Any]:
    """CPU model, cores this process may use, memory in GiB, operating system and kernel."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "arch": platform.machine(),
    }


def slug(info: dict[str, Any]) -> str:
    """The machine as part of a folder's name: "Intel(R) Xeon(R) … @ 2.80GHz" of two cores is
    "intel-xeon-2.80ghz-2c"."""
    model = re.sub(r"\((r|tm|c)\)|\b(cpu|processor|[\w-]+-core)\b", " ", info["cpu"].lower())
    words = re.findall(r"[a-z0-9.]+", model)
    return "-".join([*words, f"{info['cores']}c"])


def versions() -> dict[str, str | None]:
    """Versions of what takes part; None for what is not installed."""
    build = build_info()
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "rlox": build["version"],
        "rustc": build["rustc"].removeprefix("rustc ").split(" ")[0],
        "build_profile": build["profile"],
        "perf": _perf_version(),
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def commit(root: Path = ROOT) -> tuple[str | None, bool | None]:
    """The checkout's commit, and whether tracked files differ from it; (None, None) outside one."""
    try:
        repository = git.of(root)
        head = repository.run("rev-parse", "HEAD").strip()
        return head, bool(repository.run("status", "--porcelain", "--untracked-files=no"))
    except git.GitError:
        return None, None


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _perf_version() -> str | None:
    text = _output("perf", "--version") if shutil.which("perf") else None
    return text.removeprefix("perf version ") if text else None


def _output(*command: str) -> str | None:
    """What a command printed, stripped; None when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
