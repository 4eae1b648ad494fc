"""The list of regressions that can be injected, and what each does to the text of its file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from rlox_opt.sampling.layers import LAYERS
from rlox_opt.system.usage import UsageError

LIST = Path(__file__).with_name("injected.toml")
BOUNDS = ("compute", "python", "memory", "torch")


@dataclass(frozen=True)
class Regression:
    """In `file`, the text `find` becomes `replace`, where {k} is the amount of extra work, which
    makes `benchmark` slower, up to `probe`. `affects` finds every benchmark it may change. The
    extra work is done in `layer`, by the functions that `function` finds as "path:name"."""

    id: str
    kind: str
    bound: str
    benchmark: str
    affects: str
    file: str
    probe: int
    layer: str
    function: str
    find: str
    replace: str

    @property
    def module(self) -> str:
        """The module of benchmarks that it is found by."""
        return self.benchmark.partition(".")[0]

    def at(self, k: int) -> str:
        """`replace` with so much extra work."""
        return self.replace.replace("{k}", str(k))

    def spares(self, benchmark: str) -> bool:
        """Whether `benchmark` takes as long as before."""
        return not re.search(self.affects, benchmark)

    def does(self, function: str | None) -> bool:
        """Whether the function is one of those that do the extra work."""
        return function is not None and re.search(self.function, function) is not None


def load(path: Path = LIST) -> list[Regression]:
    """The regressions of the list. Raises UsageError, naming the key, where it is wrong."""
    found: list[Regression] = []
    for number, table in enumerate(
        tomllib.loads(path.read_text(encoding="utf-8"))["regression"], 1
    ):
        where = f"{path.name}: regression {number}"
        names = {field.name for field in fields(Regression)}
        for key in table.keys() ^ names:
            wrong = "is unknown" if key in table else "is missing"
            raise UsageError(f"{where}: the key {key!r} {wrong}")
        regression = Regression(**table)
        if regression.bound not in BOUNDS:
            raise UsageError(f"{where}: 'bound' is {regression.bound!r}, expected one of {BOUNDS}")
        if regression.layer not in LAYERS:
            raise UsageError(f"{where}: 'layer' is {regression.layer!r}, expected one of {LAYERS}")
        if "{k}" not in regression.replace or regression.probe < 1:
            raise UsageError(f"{where}: 'replace' takes {{k}}, and 'probe' a number from 1 on")
        if regression.spares(regression.benchmark):
            raise UsageError(f"{where}: 'affects' does not find its own benchmark")
        if regression.id in (other.id for other in found):
            raise UsageError(f"{where}: 'id' {regression.id!r} is taken")
        found.append(regression)
    return found


def exchanged(text: str, old: str, new: str, where: str) -> str:
    """`text` with `new` for `old`. Raises UsageError unless `old` stands there once."""
    times = text.count(old)
    if times != 1:
        raise UsageError(
            f"{LIST.name}: {where}: the text to replace stands there {times} times, expected once"
        )
    return text.replace(old, new)
