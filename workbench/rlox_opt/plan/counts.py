"""What a call costs besides time: instructions (callgrind), allocations and bytes allocated."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rlox_opt.harness.restarts import Cell
from rlox_opt.plan.extensions import cargo
from rlox_opt.plan.features import cargo_of
from rlox_opt.project.project import Project
from rlox_opt.system.scratch import scratch

_CALLS = 10
_PATIENCE_S = 300
TWINS = ("baseline", "optimized")
Counts = dict[str, dict[str, float] | None]


def count(
    project: Project, cells: Sequence[Cell], features: Sequence[str], workers: int
) -> dict[Cell, Counts]:
    """`{"instructions" | "allocations" | "allocated_bytes": {twin: per call}}` of each cell.

    All work runs in one thread. A workload that needs an interpreter is not counted; instructions
    are None where valgrind is not installed or took too long. Raises `BuildError`.
    """
    crate = cargo_of(project).twins
    target = project.root / "target"  # whatever cargo is set to
    cargo(project, "build", "--locked", "--release", "-p", crate, "--bin", "count",
          "--features", ",".join(features), "--target-dir", str(target))  # fmt: skip
    program = target / "release" / "count"
    ending = project.settings.twins.interpreted
    counted = [cell for cell in cells if not (ending and cell.workload.endswith(ending))]
    jobs = [(cell, twin) for cell in counted for twin in TWINS]
    with ThreadPoolExecutor(workers) as pool:
        counts = list(pool.map(lambda job: _count(program, *job), jobs))
    names = ("instructions", "allocations", "allocated_bytes")
    by_job = dict(zip(jobs, counts, strict=True))
    return {cell: {name: _both(by_job, cell, name) for name in names} for cell in counted}


def _both(
    counts: Mapping[tuple[Cell, str], Mapping[str, float | None]], cell: Cell, name: str
) -> dict[str, float] | None:
    numbers = {twin: n for twin in TWINS if (n := counts[cell, twin][name]) is not None}
    return numbers if len(numbers) == len(TWINS) else None


def _count(program: Path, cell: Cell, twin: str) -> dict[str, float | None]:
    size = [f"{name}={value}" for name, value in cell.size]
    command = [str(program), cell.id, cell.workload, twin, str(_CALLS), *size]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    printed: dict[str, Any] = json.loads(done.stdout)
    return {
        "instructions": _instructions(command),
        "allocations": printed["allocations"],
        "allocated_bytes": printed["bytes"],
    }


def _instructions(command: list[str]) -> float | None:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    with scratch() as folder:
        out = folder / "callgrind.out"
        tool = ("--vgdb=no", "--tool=callgrind", "--toggle-collect=*measured*",
                f"--callgrind-out-file={out}")  # fmt: skip
        try:
            subprocess.run([valgrind, "--quiet", *tool, *command],
                           capture_output=True, check=True, timeout=_PATIENCE_S)  # fmt: skip
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return None
        # callgrind names the program's files, in whatever encoding.
        text = out.read_text(encoding="utf-8", errors="replace")
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    return int(total[1]) / _CALLS if total else None
