"""Hostile calls into the extension (tests/boundary/hostile.py), from threads and forks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from campaign import Trial

import workbench

NAME, SHORT, LONG = "boundary-calls", range(1, 2), 24
PROGRAM = workbench.HERE.parent / "boundary" / "hostile.py"
_CALLS, _CALLS_SHORT = 45_000, 4_000
_FORKS = 20
_LIMIT_S = 900.0


def trial(seed: int, folder: Path) -> Trial:
    """Some ten thousand calls in a process of their own. Every second seed has RUST_BACKTRACE,
    since writing a backtrace takes locks too."""
    threads = 1 + 2 * (seed % 2)
    count = _CALLS_SHORT if seed in SHORT else _CALLS
    words = ["--seed", str(seed), "--count", str(count), "--threads", str(threads)]
    words += ["--forks", str(_FORKS if threads > 1 else 0)]
    backtrace = str(seed // 2 % 2)
    found = Trial(seed, f"RUST_BACKTRACE={backtrace} hostile.py {' '.join(words)}")
    env = {**os.environ, "PYTHONPATH": str(workbench.ROOT), "RUST_BACKTRACE": backtrace}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), *words],
        cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        found.counts["hang"] += 1
        found.fault(f"does not end within {_LIMIT_S:.0f} s")
        return found
    try:
        told = json.loads(out)
    except ValueError:
        told = {"counts": {}, "fatal": []}
    counts = told["counts"]
    found.counts["calls"] += counts.get("calls", 0) + counts.get("calls in children", 0)
    found.counts["calls that came back"] += sum(
        n for what, n in counts.items() if "returned" in what
    )
    for what in told["fatal"]:
        found.fault(what)
    if process.returncode and not told["fatal"]:
        how = signal.Signals(-process.returncode).name if process.returncode < 0 else "an error"
        found.fault(f"ended by {how}: {' '.join(err.split()[-30:])}")
    if "panicked at" in err and not found.faults:
        at = err.index("panicked at")
        found.fault(f"a panic that nobody was told of: {err[at : at + 150]}")
    if not found.counts["calls"] and not found.faults:
        found.fault(f"made no call, exit {process.returncode}: {err[-200:]}")
    return found
