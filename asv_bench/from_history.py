"""The history (`rlox_opt.history.store`) as asv's own results, so that `asv publish` shows it.

The history is the only place where recorded numbers are kept. asv's files are made from it before
each publishing, since `asv run` rewrites `benchmarks.json` and the two must not diverge. Times and
peak memory have the names of the benchmarks in `benchmarks/`. What asv has no kind for gets a name
of its own, such as "instructions.data_plane.Gae.time_gae". Steps per second become seconds per
step, since asv takes larger numbers for worse.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from asv import util
from asv.benchmarks import Benchmarks
from asv.machine import Machine
from asv.results import Results
from asv.runner import BenchmarkResult
from rlox_opt.history.store import UNITS, Cell, Entry, newest

_ENVIRONMENT = "recorded"
_OWN_NAMES = ("time", "peak_memory")
_TYPES = {"time": "time", "peak_memory": "peakmemory"}  # of others: "track"

Described = dict[str, dict[str, Any]]
Values = dict[tuple[str, ...], float]  # by parameters, as asv writes them


def write(entries: Iterable[Entry], results: Path) -> int:
    """Put the newest entry of each commit, feature set and machine into asv's results folder,
    replacing what was put there before; returns their number."""
    for path in results.glob(f"*/????????-{_ENVIRONMENT}-*.json"):
        path.unlink()
    kept = [entry for entry in newest(entries).values() if entry.cells]
    if not kept:
        return 0
    values = [_values(entry.cells) for entry in kept]
    known = _described(results, values)
    for entry, of in zip(kept, values, strict=True):
        _save(entry, of, known, results)
    util.write_json(str(results / "benchmarks.json"), known, Benchmarks.api_version)
    return len(kept)


def _values(cells: Iterable[Cell]) -> dict[tuple[str, str], Values]:
    """The values by asv's name of the benchmark, and by kind."""
    by_name: dict[tuple[str, str], Values] = {}
    for cell in cells:
        name, *parameters = split(cell.benchmark)
        value = 1 / cell.value if cell.kind == "steps" and cell.value else cell.value
        of = by_name.setdefault((named(name, cell.kind), cell.kind), {})
        of[tuple(parameters)] = value
    return by_name


def named(benchmark: str, kind: str) -> str:
    """asv's name for a benchmark's number of this kind."""
    if kind in _OWN_NAMES:
        return benchmark
    return f"{benchmark}.seconds_per_step" if kind == "steps" else f"{kind}.{benchmark}"


def split(benchmark: str) -> list[str]:
    """A name and its parameters: "a.time_it((8, 128), 'x')" is a.time_it, (8, 128) and 'x'."""
    name, bracket, rest = benchmark.partition("(")
    if not bracket:
        return [name]
    call = ast.parse(f"_({rest}", mode="eval").body
    assert isinstance(call, ast.Call)
    return [name, *map(ast.unparse, call.args)]


def _described(results: Path, used: Sequence[Mapping[tuple[str, str], Values]]) -> Described:
    """asv's descriptions of the benchmarks by name, completed with ours and their parameters."""
    path = results / "benchmarks.json"
    known = util.load_json(str(path), Benchmarks.api_version) if path.exists() else {}
    for values in used:
        for (name, kind), of in values.items():
            if name not in known:
                known[name] = {
                    "name": name,
                    "type": _TYPES.get(kind, "track"),
                    "unit": "seconds" if kind == "steps" else UNITS[kind],
                    "params": [[] for _ in next(iter(of))],
                    "param_names": [f"param{n}" for n, _ in enumerate(next(iter(of)), 1)],
                    "version": "1",
                    "code": f"recorded by rlox-opt: {kind}",
                }
            for parameters in of:
                for there, value in zip(known[name]["params"], parameters, strict=True):
                    if value not in there:
                        there.append(value)
    return dict(known)


def _save(
    entry: Entry, values: Mapping[tuple[str, str], Values], known: Described, results: Path
) -> None:
    machine = _machine(entry, results)
    features = ", ".join(entry.features) or "none"
    python = ".".join(entry.toolchain.get("python", "").split(".")[:2])
    asv = Results(
        {**machine, "python": python, "features": features},
        {},
        entry.commit,
        round(entry.committed.timestamp() * 1000),
        python,
        "-".join([_ENVIRONMENT, *(entry.features or ("none",))]),
        {},
    )
    for (name, _), of in values.items():
        every = [*itertools.product(*known[name]["params"])]
        told = [of.get(parameters, math.nan) for parameters in every]  # NaN means skipped in asv
        nothing = [None] * len(every)
        result = BenchmarkResult(told, nothing, nothing, 0, "", None)
        asv.add_result(known[name], result, started_at=entry.date)
    asv.save(str(results))


def _machine(entry: Entry, results: Path) -> dict[str, str]:
    """asv's description of the machine; made here if asv has never run on it."""
    path = results / entry.slug / "machine.json"
    of = entry.machine
    if not path.exists():
        table = {
            "machine": entry.slug,
            "os": str(of.get("os", "")),
            "arch": str(of.get("arch", "")),
            "cpu": str(of["cpu"]),
            "num_cpu": str(of["cores"]),
            "ram": f"{of.get('memory_gib', '')} GiB",
        }
        util.write_json(str(path), table, Machine.api_version)
    return dict(util.load_json(str(path), Machine.api_version))
