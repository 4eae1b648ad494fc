"""What being profiled costs a program that is not ours:

    python -m workbench.tests.sampling.accuracy.overhead [PROGRAM …] [--runs 10] [--seconds 5]

Each run has the program alone, with what records itself inside its processes ("light"), and with
perf beside that, in a new random order. How many rounds a second its main thread makes is its own
clock's to say; a ratio below 1 is what that costs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path

from rich.console import Console
from workbench.tests.sampling.accuracy.__main__ import PROGRAMS, conditions, programs

from rlox_opt.sampling.processes.launch import Options, launch
from rlox_opt.sampling.processes.samplers import Perf, Sampler
from rlox_opt.stats.student import ratio_interval
from rlox_opt.system.progress import Lines

_OUTSIDE = 0.05  # of the interval
_QUIET = Lines(Console(quiet=True))
_USUAL = ("cnn_training", "tables", "held_and_released", "asynchronous")


def main() -> int:
    """Run the programs and print a table."""
    parser = argparse.ArgumentParser(prog="overhead", description=__doc__)
    parser.add_argument("programs", nargs="*", default=_USUAL, help=", ".join(_USUAL))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0, help="that each run works for")
    asked = parser.parse_args()
    wrong = sorted({*asked.programs} - {*programs()})
    if wrong:
        parser.error(f"no program {wrong[0]!r}; there are {', '.join(programs())}")
    if asked.runs < 2:
        parser.error(f"--runs: is {asked.runs}, expected 2 or more, which an interval needs")
    print("| program | light | perf |\n|---|---|---|", flush=True)
    for name in asked.programs:
        ratios: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(asked.runs):
            rates = _rates([str(PROGRAMS / f"{name}.py"), str(asked.seconds)])
            for arm in ("light", "perf"):
                ratios[arm].append(log(rates[arm] / rates["alone"]))
        cells = [_told(ratios[arm]) for arm in ("light", "perf")]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{asked.runs} runs each, intervals of 95 %. {conditions()}")
    return 0


def _rates(words: Sequence[str]) -> Mapping[str, float]:
    """Rounds a second of each arm, run once in a random order."""
    arms: list[tuple[str, Callable[[list[str], dict[str, str], Path], object]]] = [
        ("alone", lambda command, env, _: subprocess.run(command, env=env, check=True)),
        ("light", lambda command, env, folder: _launched(command, env, folder, None)),
        ("perf", lambda command, env, folder: _launched(command, env, folder, Perf())),
    ]
    random.shuffle(arms)
    rates = {}
    for arm, run in arms:
        with tempfile.TemporaryDirectory() as scratch:
            truth = Path(scratch, "truth")
            truth.mkdir()
            env = {**os.environ, "ACCURACY_TRUTH": str(truth)}
            run([sys.executable, *words], env, Path(scratch, "run"))
            told = [json.loads(path.read_text()) for path in truth.iterdir()]
            main_thread = max(told, key=lambda of: of["thread"] == "MainThread")
            begin, end = main_thread["window"]
            rates[arm] = main_thread["rounds"] / (end - begin)
    return rates


def _launched(
    command: list[str], env: dict[str, str], folder: Path, sampler: Sampler | None
) -> None:
    launch(command, folder, Options(frames=True), sampler, _QUIET, environment=env)


def _told(log_ratios: Sequence[float]) -> str:
    low, high = ratio_interval(log_ratios, _OUTSIDE)
    middle = (low * high) ** 0.5
    return f"{middle:.3f} ({low:.3f}–{high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
