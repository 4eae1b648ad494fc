"""How near a profile comes to the truth in programs that are not ours:

    python -m workbench.tests.sampling.accuracy [PROGRAM …] [--sampler perf] [--seconds 10]

Each program of `programs/` is profiled as a user would (`rlox-opt profile script`), and says by its
own clock what each of its threads did. The table sets both beside each other, layer by layer.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from workbench.tests.sampling.accuracy.compare import TOLERANCE, Row, rows, told

from rlox_opt.system.machine import commit, machine

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
NOT_HERE = 77  # as programs/_build.py says it


def programs() -> list[str]:
    """All there are: one file each."""
    return sorted(path.stem for path in PROGRAMS.glob("[!_]*.py"))


def profile(
    rlox_opt: Sequence[str], name: str, sampler: str, python: str, seconds: float, folder: Path
) -> tuple[list[Any], Any] | str:
    """What the program's threads tell, and the report of its profile; or why there is none."""
    truth = folder / "truth"
    truth.mkdir(parents=True)
    command = [
        *(*rlox_opt, "profile", "script"),
        *(str(PROGRAMS / f"{name}.py"), "--sampler", sampler, "--out", str(folder / "report")),
        *("--python", python, "--json", "--", str(seconds)),
    ]
    done = subprocess.run(
        command,
        env=os.environ | {"ACCURACY_TRUTH": str(truth)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not (folder / "report" / "report.json").exists():
        return f"no report: {done.stderr.strip()[-500:]}"
    report = json.loads((folder / "report" / "report.json").read_text())
    if report["status"] == NOT_HERE:
        return "left out: " + (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    compositions = [json.loads(path.read_text()) for path in sorted(truth.iterdir())]
    return (compositions, report) if compositions else f"no truth: {done.stderr.strip()[-500:]}"


def main() -> int:
    """Profile the programs and print the tables; 1 where a layer is too far from the truth."""
    parser = argparse.ArgumentParser(prog="accuracy", description=__doc__)
    parser.add_argument("programs", nargs="*", help="all without any")
    parser.add_argument("--sampler", choices=tuple(TOLERANCE), action="append")
    parser.add_argument("--seconds", type=float, default=10.0, help="that each program works for")
    parser.add_argument("--python", default=sys.executable, help="that runs the programs")
    ours = shlex.join([sys.executable, "-m", "rlox_opt.cli.main"])
    parser.add_argument("--rlox-opt", default=ours, help="the command, as of another commit")
    parser.add_argument("--keep", type=Path, help="a folder for the reports")
    asked = parser.parse_args()
    wrong = sorted(set(asked.programs) - set(programs()))
    if wrong:
        parser.error(f"no program {wrong[0]!r}; there are {', '.join(programs())}")
    command = shlex.split(asked.rlox_opt)
    every: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        for sampler in asked.sampler or ["perf"]:
            for name in asked.programs or programs():
                into = folder / f"{name}-{sampler}"
                found = profile(command, name, sampler, asked.python, asked.seconds, into)
                print(f"### {name}, {sampler}\n")
                if isinstance(found, str):
                    print(found, end="\n\n")
                    continue
                own = rows(*found, sampler)
                every += own
                print(told(own), flush=True)
    print(_summary(every))
    return int(any(abs(row.error) > TOLERANCE[row.sampler] for row in every))


def _summary(every: list[Row]) -> str:
    lines = []
    for sampler, points in TOLERANCE.items():
        own = [row for row in every if row.sampler == sampler]
        if not own:
            continue
        near = sum(abs(row.error) <= points for row in own)
        held = sum(row.holds for row in own)
        lines.append(
            f"{sampler}: {near} of {len(own)} layers within {points:g} points, the worst "
            f"{max(abs(row.error) for row in own):.1f}; {held} intervals hold the truth "
            f"({100 * held / len(own):.0f} %)."
        )
    return "\n".join([*lines, "", conditions()])


def conditions() -> str:
    """Of a measurement: day, commit, machine."""
    where, (head, dirty) = machine(), commit(HERE.parents[3])
    return (
        f"{date.today()}, commit {(head or 'unknown')[:12]}{' and changes' if dirty else ''}, "
        f"{where['cpu']} ({where['cores']} cores), {where['kernel']}, "
        f"Python {sys.version.split()[0]}."
    )


if __name__ == "__main__":
    sys.exit(main())
