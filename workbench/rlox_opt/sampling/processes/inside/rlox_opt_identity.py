"""The identity of a process: its role, its number among equal ones, and the program's name for
it."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

PARENT = "RLOX_OPT_RECORD_PARENT"  # the key of the process that started this one
_RANKED = "RLOX_OPT_RECORD_RANK"  # a rank that already has its process; its children inherit RANK
_NUMBERED = re.compile(r"^(?P<role>.*?)[-_ :#]*(?P<index>\d+)$")
_BY_DEFAULT = re.compile(r"^(Spawn|Fork|ForkServer)?Process-[\d:]+$")
_ENV_WORKER = re.compile(r"^Worker<\w*VectorEnv>-(\d+)$")  # Gymnasium's

Role = tuple[str, "int | None", str]


def argv() -> list[str]:
    """The command that started this process, as far as Python knows it."""
    words: list[str] = getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]
    return [word if len(word) < 500 else word[:500] + "…" for word in words]


def of_program() -> Role:
    """The role of a process that a command started."""
    words = argv()
    text = " ".join(words)
    rank = os.environ.get("RANK", "")
    if "multiprocessing.resource_tracker" in text:
        return "resource tracker", None, "resource tracker"
    if "multiprocessing.forkserver" in text:
        return "fork server", None, "fork server"
    if "--multiprocessing-fork" in words:
        return "process", None, "process"  # until multiprocessing names it
    if rank.isdigit() and os.environ.get(_RANKED) != rank:
        os.environ[_RANKED] = rank
        return "rank", int(rank), f"rank {rank}"
    if "torch.distributed.run" in text or any(word.endswith("/torchrun") for word in words):
        return "torchrun", None, "torchrun"
    if PARENT not in os.environ:
        return "main", None, _program(words)
    return _program(words), None, _program(words)


def _program(words: list[str]) -> str:
    """ "train" of `python train.py`, "package.train" of `python -m package.train`."""
    for at, word in enumerate(words[1:], 1):
        if word == "-m" and at + 1 < len(words):
            return words[at + 1]
        if word == "-c":
            return "python -c"
        if not word.startswith("-"):
            return re.sub(r"\.pyw?$", "", word.rsplit("/", 1)[-1])
    return "python"


def of_multiprocessing() -> Role | None:
    """The role of a multiprocessing child once it has its name; None for other processes."""
    module: Any = sys.modules.get("multiprocessing.process")
    try:
        current = module.current_process()
        name = str(current.name)
    except (AttributeError, NameError):  # not imported, or not completely
        return None
    if name == "MainProcess":
        return None
    return named(name, getattr(getattr(current, "_target", None), "__name__", None))


def named(name: str, target: str | None = None) -> Role:
    """The role of a process that the program calls `name` and that runs the function `target`."""
    worker = _ENV_WORKER.match(name)
    if worker is not None:
        return "env worker", int(worker.group(1)), name
    numbered = _NUMBERED.match(name)
    if numbered is None:
        return name, None, name
    role, index = numbered.group("role"), int(numbered.group("index"))
    if _BY_DEFAULT.match(name) and target is not None:
        role = target  # a name that is a mere number does not say what the process does
    return role or name, index, name
