"""Minutes of work, after which a process must not have more memory, threads or files than
before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from campaign import Trial

import workbench

NAME, SHORT, LONG = "levels", range(4), 9
ACTIVITIES = ("buffers", "environments", "collectors", "spans", "steps", "samples", "ppo",
              "ppo_async", "sac")  # fmt: skip
PROGRAM = workbench.HERE / "leveling.py"
_SECONDS, _SECONDS_SHORT = 40.0, 1.0
_LIMIT_S = 900.0


def trial(seed: int, folder: Path) -> Trial:
    """Do one kind of work for some seconds, in a process of its own."""
    name = ACTIVITIES[seed % len(ACTIVITIES)]
    seconds = _SECONDS_SHORT if seed in SHORT else _SECONDS
    found = Trial(seed, f"{name} for {seconds:g} s")
    told = json.loads(_asked(name, str(seconds)))
    found.counts[f"rounds of {name}"] += told["rounds"]
    for text in told["grown"]:
        found.fault(text)
    return found


def _asked(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        env={**os.environ, "PYTHONPATH": str(workbench.ROOT)},
        capture_output=True, text=True, timeout=_LIMIT_S,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout
