"""The list of regressions that can be injected, and what each does to the text of its file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from rlox_opt.sampling.layers import LAYERS
from rlox_opt.system.schema import read
from rlox_opt.system.usage import UsageError

LIST = Path(__file__).with_name("injected.toml")


class Regression(Struct, frozen=True, forbid_unknown_fields=True):
    """In `file`, the text `find` becomes `replace`, in which {k} is the amount of extra work. It
    makes `benchmark` slower, up to the amount `probe`. `affects` matches every benchmark that may
    change. The extra work is done in `layer`, by functions that `function` matches as
    "path:name"."""

    id: str
    kind: str
    bound: Literal["compute", "python", "memory", "torch"]
    benchmark: str
    affects: str
    file: str
    probe: Annotated[int, Meta(ge=1)]
    layer: str
    function: str
    find: str
    replace: str

    def __post_init__(self) -> None:
        if self.layer not in LAYERS:
            raise ValueError(f"`layer` is {self.layer!r}; it takes {' or '.join(LAYERS)}")
        if "{k}" not in self.replace:
            raise ValueError("`replace` has no {k}, the amount of extra work")
        if self.spares(self.benchmark):
            raise ValueError(f"`affects` is {self.affects!r}; it must find its own benchmark")

    @property
    def module(self) -> str:
        """The module that contains the benchmark."""
        return self.benchmark.partition(".")[0]

    def at(self, k: int) -> str:
        """`replace` with this amount of extra work."""
        return self.replace.replace("{k}", str(k))

    def spares(self, benchmark: str) -> bool:
        """Whether `benchmark` is not affected."""
        return not re.search(self.affects, benchmark)

    def does(self, function: str | None) -> bool:
        """Whether the function is one of those that do the extra work."""
        return function is not None and re.search(self.function, function) is not None


class _File(Struct, forbid_unknown_fields=True):
    regression: list[Regression]

    def __post_init__(self) -> None:
        if len({one.id for one in self.regression}) < len(self.regression):
            raise ValueError("two regressions share an `id`; give each its own")


def load(path: Path = LIST) -> list[Regression]:
    """The regressions of the list. Raises NotReadError, which names the key."""
    return read(path, _File).regression


def exchanged(text: str, old: str, new: str, where: str) -> str:
    """`text` with `new` in place of `old`. Raises UsageError unless `old` stands there once."""
    times = text.count(old)
    if times != 1:
        raise UsageError(
            f"{LIST.name}: {where}: the text to replace stands there {times} times, expected once"
        )
    return text.replace(old, new)
