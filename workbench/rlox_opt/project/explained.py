"""Why a benchmark takes another time than before: what of its calls has grown, or shrunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

BENCHMARK_S = 25.0  # for one benchmark: processes, samples and their reading
MOST = 3  # benchmarks are looked into


@dataclass(frozen=True)
class Told:
    """A part of the change with its 95 % interval, and what it is of: `whose` code, `name` in the
    file or library `place`. `in_diff` says whether the change touches it, None where nobody can
    tell; `line` is where it begins in head (0 unknown), `text` its source, `within` the part that
    is spent in it and in what it calls, but for other functions that the change touches."""

    whose: str
    part: float
    low: float
    high: float
    place: str = ""
    name: str = ""
    line: int = 0
    in_diff: bool | None = None
    text: str = ""
    within: float | None = None

    @property
    def surely(self) -> bool:
        """Whether it takes part in the change for certain."""
        return self.low > 0

    @property
    def where(self) -> str:
        """ "thing/sums.py:total", "libgeos:GEOSArea"; whose code, where that is all."""
        return f"{self.place}:{self.name}" if self.name else self.whose

    def facts(self) -> dict[str, Any]:
        """What `--json` prints."""
        told = {of: getattr(self, of) for of in self.__dataclass_fields__}
        rounded = {of: round(told[of], 4) for of in ("part", "low", "high")}
        return {**told, **rounded}


@dataclass
class Why:
    """What was found of one benchmark. `ratio` is time in head / time in base, of whose change
    all parts are; None where head alone was looked at, and they are parts of its time. `samples`
    are those of base and head by sampler; `missing` says what could not be seen, and why."""

    benchmark: str
    ratio: float | None
    layers: Sequence[Told] = ()
    functions: Sequence[Told] = ()
    native: Sequence[Told] = ()
    touched: Sequence[Told] = ()
    lines: Sequence[Told] = ()
    samples: dict[str, tuple[int, int]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """What `--json` prints."""
        lists = ("layers", "functions", "native", "touched", "lines")
        return {
            "benchmark": self.benchmark,
            "ratio": self.ratio,
            **{name: [of.facts() for of in getattr(self, name)] for name in lists},
            "samples": self.samples,
            "missing": self.missing,
            "seconds": round(self.seconds, 1),
        }
