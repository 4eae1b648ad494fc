"""Where a measurement was made: machine, versions and commit; never a name of a host or user."""

from __future__ import annotations

import os
import platform
import re
import reprlib
from pathlib import Path
from typing import Any

from rlox_opt.system import git


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
    """The machine as a part of a folder's name: "Intel(R) Xeon(R) … @ 2.80GHz" with two cores is
    "intel-xeon-2.80ghz-2c". Raises ValueError if `info` lacks what is needed."""
    try:
        cpu, cores = str.lower(info["cpu"]), int.__index__(info["cores"])
    except (LookupError, TypeError):
        raise ValueError(f"`machine` is {reprlib.repr(info)}; it takes cpu and cores") from None
    model = re.sub(r"\((r|tm|c)\)|\b(cpu|processor|[\w-]+-core)\b", " ", cpu)
    words = re.findall(r"[a-z0-9.]+", model)
    return "-".join([*words, f"{cores}c"])


def commit(root: Path) -> tuple[str | None, bool | None]:
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
    told: dict[str, str] = dict(
        re.findall(r"^(cpu family|model name|model)[ \t]*:[ \t]*(.+)$", text, re.MULTILINE)
    )
    name = told.get("model name", platform.machine()).strip()
    if {"cpu family", "model"} <= told.keys() and not re.search(r"\d", name.partition("@")[0]):
        # Virtual machines may report only "AMD EPYC", which processors of many years are called.
        name += f", family {told['cpu family']} model {told['model']}"
    return name


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()
