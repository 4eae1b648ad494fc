"""One figure of a record: a path into it, perhaps a function of it, and how it is rounded.

    table[peer=sb3].final_return.mean .0f       a value, to no decimal
    table[peer=rlox].sps_ratio.ci95[1] .1f      an element of a list
    ratio(a.path, another.path) .2f             one divided by the other
    count(rows[tool=diff][verdict=slower]) d    how many there are
    median(runs[peer=sb3].train_s) .1f          also: min, max, mean, sum
    percent(run_alarms) d                       a share; more(a.ratio) .1f: a ratio's excess over 1
    nth(rows[task=CartPole].ratio, 1) .2f       the second number in a text
    standing(rlox, ahead) d                     cases of `peers primitives` with that verdict; "all"
    scored(diff, found at 3) d                  of the slowdowns of `asv_bench.injected` that are
                                                truly near 3 %; also made at 3. beside, of beside:
                                                flags, and benchmarks that a slowdown spares;
                                                cells, of cells, runs, of runs: flags where
                                                nothing changed (at 0, where others are in the
                                                same record); inside, of inside: true ratios in
                                                the interval; undecided, undecided beside:
                                                benchmarks, all or those that are spared
    bound(diff, cells) .1f                      the largest rate, in per cent, that the flags allow
    files d                                     the number of records in a folder

`[key=value]` keeps the elements of a list that have this value, `[*]` keeps all. A key may itself
be a path; one with dots is quoted: `cells["a.b"]`. A number alone is that number. Of a Markdown
page (`.md`) the tables are read as `rows`, with `date`, `commit`, `machine`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlox_opt.history.injected import has_truth, is_near, slowed, spared
from rlox_opt.history.standing import standing
from rlox_opt.stats.paired import FLAGGED
from rlox_opt.stats.rate import upper_bound
from rlox_opt.system import schema
from rlox_opt.system.files import read_text

MOST_ROUNDED = 0.03  # of its value: 4.79 may be rounded to 4.8, but not to 5
_CALL = re.compile(r"(\w+)\((.*)\)")
_PART = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
_NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")
_ORIGIN = {
    "date": re.compile(r"Date\**: (\d{4}-\d{2}-\d{2}T?[\d:]*Z?)"),
    "commit": re.compile(r"Commit\**: ([0-9a-f]{7,40})"),
    "machine": re.compile(r"Machine\**: ([^.;\n]+?), (\d+) cores"),
}


class FigureError(ValueError):
    """A claim asks for something that its record lacks; the message names what there is."""


def read(path: Path) -> dict[str, Any]:
    """A record: a JSON object, the tables of a page, or the newest file of a folder together with
    the number of files. Raises NotReadError or FigureError."""
    if path.is_dir():
        records = [schema.read(file, dict[str, Any]) for file in sorted(path.rglob("*.json"))]
        if not records:
            raise FigureError(f"{path}: holds no record")
        return max(records, key=lambda one: str(one.get("date"))) | {"files": len(records)}
    return _page(read_text(path)) if path.suffix == ".md" else schema.read(path, dict[str, Any])


def figure(record: Mapping[str, Any], asked: str) -> str:
    """A figure as it is written in a text: "29.9", "1,024". Raises FigureError."""
    expression, _, form = asked.rpartition(" ")
    if not expression:
        raise FigureError(f"{asked!r}: names no rounding, such as .1f or d, behind a blank")
    exact = value(record, expression)
    try:
        said = f"{round(exact) if form.endswith('d') else exact:{form}}"
    except ValueError as error:
        raise FigureError(f"{asked!r}: {form!r} is no rounding ({error})") from None
    shown = float(said.replace(",", "").rstrip("%")) / (100 if form.endswith("%") else 1)
    if abs(shown - exact) > MOST_ROUNDED * abs(exact):
        raise FigureError(f"{asked!r}: {exact:.4g} is not {said}; round it to more digits")
    return said


def value(record: Mapping[str, Any], expression: str) -> float:
    """The value of an expression. Raises FigureError."""
    call = _CALL.fullmatch(expression.strip())
    name, inside = (call[1], call[2]) if call else ("", expression.strip())
    arguments = [inside]
    if name:
        arguments = [part.strip() for part in re.split(r",(?![^\[]*\])", inside)]
    derive = _DERIVATIONS.get(name)
    if derive is None:
        raise FigureError(f"{name}: is no derivation; there are {', '.join(_DERIVATIONS)[2:]}")
    try:
        return derive(record, *arguments)
    except (TypeError, ValueError, ZeroDivisionError, IndexError, KeyError) as error:
        if isinstance(error, FigureError):
            raise
        raise FigureError(f"{expression!r}: {type(error).__name__}: {error}") from None


def values(record: Any, path: str) -> list[Any]:
    """All values at a path. Raises FigureError if a key is missing."""
    places = [record]
    for key, selector in _PART.findall(path):
        places = (
            _elements(places, selector) if selector else [_at(one, key, path) for one in places]
        )
    return places


def _at(one: Any, key: str, path: str) -> Any:
    if isinstance(one, Mapping) and key in one:
        return one[key]
    there = ", ".join(map(str, one)) if isinstance(one, Mapping) else type(one).__name__
    raise FigureError(f"{path}: there is no {key}; there is {there[:200]}")


def _elements(places: list[Any], selector: str) -> list[Any]:
    if selector.startswith('"'):
        return [_at(one, selector.strip('"'), selector) for one in places]
    if re.fullmatch(r"-?\d+", selector):
        return [one[int(selector)] for one in places]
    # A list that was filtered before is filtered again: its elements are already single values.
    every = [each for one in places for each in (one if isinstance(one, list) else [one])]
    if selector == "*":
        return every
    key, equal, wanted = selector.partition("=")
    if not equal:
        raise FigureError(f"[{selector}]: is neither a number, nor *, nor key=value")
    return [each for each in every if _has(each, key, wanted)]


def _has(one: Any, key: str, wanted: str) -> bool:
    try:
        return any(str(each) == wanted for each in values(one, key))
    except FigureError:
        return False


def _numbers(record: Any, path: str) -> list[float]:
    numbers = [_number(each) for each in values(record, path)]
    if not numbers:
        raise FigureError(f"{path}: nothing has it")
    return numbers


def _number(one: Any, n: int = 0) -> float:
    """A number, or the n-th number in a text."""
    if isinstance(one, str):
        return float(_NUMBER.findall(one)[n].replace(",", "").replace("−", "-"))
    if isinstance(one, int | float):
        return float(one)
    raise FigureError(f"{type(one).__name__}: is no number")


def _one(record: Any, path: str) -> float:
    if _NUMBER.fullmatch(path):
        return _number(path)
    numbers = _numbers(record, path)
    if len(numbers) > 1:
        raise FigureError(f"{path}: {len(numbers)} have it; name one, or derive one from all")
    return numbers[0]


def _nth(record: Any, path: str, n: str) -> float:
    texts = values(record, path)
    if len(texts) != 1:
        raise FigureError(f"{path}: {len(texts)} have it, which should be one")
    return _number(texts[0], int(n))


def _standing(record: Mapping[str, Any], name: str, verdict: str) -> float:
    counts = standing(record, name)
    return sum(counts.values()) if verdict == "all" else counts.get(verdict, 0)


def _scored(record: Mapping[str, Any], arm: str, what: str) -> float:
    rows = [row for row in record["rows"] if arm in row.get("cells", ())]
    kind, _, percent = what.partition(" at ")
    if percent:
        of_size = [row for row in rows if row.get("percent") == float(percent)]
        rows = [row for row in of_size if not row["percent"] or is_near(row)]
    made = [row for row in rows if "truth" in row]
    verdicts = [[cell["verdict"] for cell in row["cells"][arm].values()] for row in rows]
    runs = [[verdict in FLAGGED for verdict in run] for run in verdicts]
    of = {
        "found": [slowed(row, arm)["verdict"] == "slower" for row in made],
        "beside": [cell["verdict"] in FLAGGED for row in made for cell in spared(row, arm)],
        "cells": [flag for run in runs for flag in run],
        "inside": [has_truth(row, slowed(row, arm)) for row in made],
        "runs": [any(run) for run in runs],
        "undecided": [verdict == "undecided" for run in verdicts for verdict in run],
        "undecided beside": [
            cell["verdict"] == "undecided" for row in made for cell in spared(row, arm)
        ],
    }
    if kind == "made":
        return len(of["found"])
    return len(of[kind.removeprefix("of ")]) if kind.startswith("of ") else sum(of[kind])


def _bound(record: Mapping[str, Any], arm: str, what: str) -> float:
    flags, of = _scored(record, arm, what), _scored(record, arm, f"of {what}")
    return 100 * upper_bound(round(flags), round(of))


_DERIVATIONS: dict[str, Callable[..., float]] = {
    "": _one,
    "ratio": lambda record, one, other: _one(record, one) / _one(record, other),
    "count": lambda record, path: len(values(record, path)),
    "min": lambda record, path: min(_numbers(record, path)),
    "max": lambda record, path: max(_numbers(record, path)),
    "sum": lambda record, path: sum(_numbers(record, path)),
    "mean": lambda record, path: statistics.fmean(_numbers(record, path)),
    "median": lambda record, path: statistics.median(_numbers(record, path)),
    "percent": lambda record, path: 100 * _one(record, path),
    "more": lambda record, path: 100 * (_one(record, path) - 1),
    "nth": _nth,
    "scored": _scored,
    "bound": _bound,
    "standing": _standing,
}


def _page(text: str) -> dict[str, Any]:
    rows, columns = [], list[str]()
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = _cells(line)
        elif not set(line) <= set("|-: "):
            rows.append(dict(zip(columns, _cells(line), strict=False)))
    page: dict[str, Any] = {"rows": rows, "dirty": "with uncommitted changes" in text}
    for name, pattern in _ORIGIN.items():
        if match := pattern.search(text):
            page[name] = match[1]
            if name == "machine":
                page[name] = {"cpu": match[1], "cores": int(match[2])}
    return page


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
