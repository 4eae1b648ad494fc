"""Why a benchmark takes longer or shorter than before: which parts of its calls changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

BENCHMARK_S = 25.0  # for one benchmark: processes, samples and reading them
MOST = 3  # benchmarks that are examined


@dataclass(frozen=True)
class Told:
    """A part of the change, with its 95 % interval. `whose` is the owner of the code, `name` the
    function in the file or library `place`. `in_diff` says whether the change touches it (None if
    that is not known). `line` is where it begins in head (0: unknown), `text` its source. `within`
    is the part spent in it and in what it calls, except in other functions that the change
    touches."""

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
        """Whether its whole interval lies above zero."""
        return self.low > 0

    @property
    def where(self) -> str:
        """ "thing/sums.py:total", "libgeos:GEOSArea"; only the owner if no more is known."""
        return f"{self.place}:{self.name}" if self.name else self.whose

    def facts(self) -> dict[str, Any]:
        """What `--json` prints."""
        told = {of: getattr(self, of) for of in self.__dataclass_fields__}
        rounded = {of: round(told[of], 4) for of in ("part", "low", "high")}
        return {**told, **rounded}


@dataclass
class Why:
    """What was found about one benchmark. `ratio` is time in head / time in base, and the parts are
    those of the difference. If only head was examined it is None, and they are parts of its time.
    `samples` are those of base and head by sampler. `missing` says what could not be seen, and
    why."""

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
