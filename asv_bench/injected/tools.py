"""The tools under test, each run as a user runs it: `rlox-opt diff`, `rlox-opt bisect`, `asv
continuous`. A tool's answer about a benchmark is a cell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from rlox_opt.system.usage import UsageError

from asv_bench.project import PROJECT

FACTORS = (1.03, 1.1)  # of asv: one that should show 5 %, and its default
ROOT = PROJECT.root
FOLDER = PROJECT.cache / "injected"
_TORCH = "trainers"  # the module whose benchmarks need asv's environment with torch
_MARKS = {"+": "slower", "-": "faster", "!": "failed", "*": "failed", "x": "not comparable"}
_TIMED = re.compile(r"\btime_\w+(\(|$)")
_TOLD = re.compile(r"^\d+ times, .*: (.*)\.$", re.MULTILINE)
_ROW = re.compile(r"^\|([^|]*)\|[^|]*\|[^|]*\|([^|]*)\|(.*)\|\s*$")


class ToolError(RuntimeError):
    """A tool gave no answer; the message ends with its output."""


class Cell(TypedDict):
    """A tool's answer about a benchmark: `verdict` is "slower", "faster" or another word."""

    verdict: str
    ratio: float | None
    ci99: list[float] | None


Cells = dict[str, Cell]


def one_of(benchmarks: Iterable[str]) -> str:
    """A regular expression that matches exactly these benchmarks."""
    return f"^(?:{'|'.join(map(re.escape, benchmarks))})$"


def diff(
    base: str, head: str, benchmarks: Iterable[str], threshold: float, apart: bool = False
) -> Cells:
    """The verdicts of `rlox-opt diff` at a threshold in per cent. With `apart` each side has a
    process of its own. Raises ToolError."""
    chosen = ["--bench", one_of(benchmarks), "--threshold", str(threshold)]
    chosen += ["--apart"] if apart else []
    said = _rlox_opt("diff", base, head, *chosen, "--no-counts", "--no-why", "--anyway", "--json")
    if not said["complete"]:
        raise ToolError("rlox-opt diff was interrupted")
    cells = cells_of(said["results"])
    for failure in said["failures"]:
        cells[failure["benchmark"]] = Cell(verdict="failed", ratio=None, ci99=None)
    return cells


def bisect(good: str, bad: str, benchmark: str) -> dict[str, Any]:
    """What `rlox-opt bisect` found. Raises ToolError."""
    return _rlox_opt("bisect", good, bad, "--bench", benchmark, "--json")


def cells_of(results: Iterable[Mapping[str, Any]]) -> Cells:
    """The rows of `rlox-opt diff --json`, by benchmark."""
    return {
        row["benchmark"]: Cell(verdict=row["verdict"], ratio=row["ratio"], ci99=row["ci99"])
        for row in results
    }


def _rlox_opt(*arguments: str) -> dict[str, Any]:
    done = _run([sys.executable, "-m", "rlox_opt.cli.main", *arguments], os.environ)
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise ToolError(f"rlox-opt {arguments[0]}: {tail(done)}") from None
    return said


class Asv:
    """asv with the repository's own configuration, but with one feature set. Results, environments
    and pages lie in a folder of this program, so that no history of the project changes."""

    def __init__(self, folder: Path = FOLDER / "asv") -> None:
        self._folder = folder
        self._configs: dict[str, Path] = {}

    def build(self, commit: str, module: str) -> None:
        """Build the commit's wheel and make its environment. Raises ToolError."""
        done = self._asv(module, "run", f"{commit}^!", "--bench", "just-discover")
        if done.returncode:
            raise ToolError(f"asv run {commit[:10]}: {tail(done)}")

    def continuous(
        self, base: str, head: str, benchmarks: Sequence[str], factor: float
    ) -> tuple[Cells, str]:
        """The verdicts of `asv continuous` at a factor, and how many there are of each kind.
        Without benchmarks, it runs its default set. All benchmarks must need the same environment.
        Raises ToolError."""
        module = benchmarks[0].partition(".")[0] if benchmarks else ""
        named = ("--bench", one_of(benchmarks)) if benchmarks else ()
        at = ("--factor", str(factor), "--no-only-changed")
        done = self._asv(module, "continuous", base, head, *named, *at)
        said = dict(rows(done.stdout))
        lacking = [name for name in benchmarks if name not in said]
        if done.returncode not in (0, 1) or lacking or not said:
            raise ToolError(f"asv says nothing of {', '.join(lacking) or 'these'}: {tail(done)}")
        chosen = benchmarks or [n for n, cell in said.items() if _TIMED.search(n) and cell["ratio"]]
        return {name: said[name] for name in chosen}, "".join(_TOLD.findall(done.stdout))

    def _asv(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        name = "asv.trainers.conf.json" if module == _TORCH else "asv.conf.json"
        if name not in self._configs:
            self._configs[name] = self._configured(ROOT / name)
        config = ("--config", str(self._configs[name]))
        # asv's plug-in is a module of the repository; asv drops PYTHONPATH for the benchmarks.
        return _run(
            [sys.executable, "-m", "asv", *config, *arguments],
            {**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def _configured(self, path: Path) -> Path:
        from asv.util import load_json

        if not path.is_file():
            raise UsageError(f"{path}: is not there; asv needs it")
        config = load_json(str(path), js_comments=True)
        config |= {f"{what}_dir": str(self._folder / what) for what in ("env", "results", "html")}
        config |= {"repo": str(ROOT), "benchmark_dir": str(path.parent / config["benchmark_dir"])}
        config["matrix"] = {"req": config["matrix"]["req"]}
        self._folder.mkdir(parents=True, exist_ok=True)
        ours = self._folder / path.name
        ours.write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        return ours


def rows(table: str) -> Iterable[tuple[str, Cell]]:
    """The benchmarks in a table that asv printed."""
    for line in table.splitlines():
        if not (row := _ROW.match(line)):
            continue
        mark, ratio, name = (part.strip() for part in row.groups())
        if name.startswith("Benchmark") or set(name) <= set(":-"):
            continue
        try:
            value = float(ratio.lstrip("~"))
        except ValueError:
            value = None
        yield name, Cell(verdict=_MARKS.get(mark, "unchanged"), ratio=value, ci99=None)


def _run(command: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def tail(done: subprocess.CompletedProcess[str]) -> str:
    """Its exit status, and the last lines that it said."""
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-15:]
    return "\n".join([f"exit status {done.returncode}", *said])
