"""What all kinds of faults share: trials that a seed determines, run in folders of their own,
several at once, and counted."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

CODES = frozenset((0, 1, 2, 3, 130))  # of workbench/rlox_opt/system/exits.py
_TRACEBACK = "Traceback (most recent call last)"
_OWN = "an error of rlox-opt itself"
_TAIL = 160


@dataclass
class Trial:
    """The result of a seed: `what` was run or read, as a line for people; `faults`, a line each;
    and `counts` of what was done, by name."""

    seed: int
    what: str = ""
    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def fault(self, text: str) -> None:
        """Note a fault."""
        self.faults.append(" ".join(text.split()))


class Kind(Protocol):
    """A kind of fault: a module. `SHORT` and `LONG` are trials in the default suite and in `make
    faults`; `SKIP` says why it cannot be tried on this machine, or is empty."""

    NAME: str
    SHORT: Iterable[int]
    LONG: int

    def trial(self, seed: int, folder: Path) -> Trial:
        """Try the fault that `seed` draws, in the empty folder `folder`."""


def repeat(kind: str, seed: int) -> str:
    """The command that repeats a trial."""
    return f"python tests/faults --only {kind} --seed {seed} --count 1"


def lines(kind: str, trial: Trial) -> Iterator[str]:
    """A line for each fault: what was found, in what, and the command that repeats it."""
    for fault in trial.faults:
        yield f"{kind}: {trial.what}: {fault} [{repeat(kind, trial.seed)}]"


def held(
    kind: Kind, seeds: Iterable[int], workers: int, hear: Callable[[Trial], None] = lambda _: None
) -> list[Trial]:
    """The trials of `seeds`, `workers` at once. `hear` is called as each one ends, so that a Ctrl-C
    loses none that has ended."""
    done: list[Trial] = []
    left = iter(seeds)
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(_in_a_folder, kind, seed) for seed in islice(left, workers)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(_in_a_folder, kind, seed) for seed in islice(left, len(ended))}
            for future in ended:
                _tell(future, done, hear)
    return done


def _tell(future: Future[Trial], done: list[Trial], hear: Callable[[Trial], None]) -> None:
    done.append(future.result())
    hear(done[-1])


def _in_a_folder(kind: Kind, seed: int) -> Trial:
    folder = Path(tempfile.mkdtemp(prefix=f"rlox-faults-{kind.NAME.replace(' ', '-')}-"))
    try:
        return kind.trial(seed, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def complaints(code: int, out: str, err: str, codes: Iterable[int] = CODES) -> Iterator[str]:
    """What is wrong with how a command line ended. There must be no traceback and no unknown exit
    code; and if it could not do what was asked, it must say why in a line of its own."""
    if _TRACEBACK in out or _TRACEBACK in err:
        text = err if _TRACEBACK in err else out
        yield f"a traceback, exit {code}: {_last(text)}"
    elif _OWN in err:  # a traceback, but for who finds it in a file
        yield f"{err[err.index(_OWN) :][:_TAIL]}"
    elif code not in {*codes}:
        yield f"exit {code}, expected one of {sorted(codes)}: {_last(err)}"
    elif code and not out.strip() and (code == 1 or "rlox-opt" not in err):
        yield f"exit {code} without a line that says why: {_last(err)!r}"


def _last(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "")[:_TAIL]


def marked(mark: str) -> dict[int, str]:
    """The processes that have `mark` in their environment, with their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                if words:  # else it has ended, and nobody has asked for its status
                    found[int(folder.name)] = words.decode(errors="replace").strip()
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


def outlived(mark: str, patience_s: float) -> dict[int, str]:
    """The processes that still run after `patience_s`; they are then killed."""
    until = time.monotonic() + patience_s
    while (left := marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        subprocess.run(["kill", "-KILL", str(pid)], check=False, capture_output=True)
    return left


def random_of(kind: str, seed: int) -> random.Random:
    """The generator of a trial, different for each kind and seed."""
    return random.Random(f"{kind} {seed}")
