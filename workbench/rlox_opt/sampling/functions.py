"""Which function of ours a stack was in: in the Rust crates, or in the Python that trains."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from rlox_opt.sampling.samples import Frame

Text = Callable[[str], str]  # the source in a file of the repository; "" where it is not there

# The workbench does not count: it looks on.
_OURS = re.compile(
    r"crates/rlox-(core|python)/src/|rlox/(?!(timing|profiling|report|history|opt)/).*\.py$"
)
_FN = re.compile(r'^\s*(?:pub(?:\([\w ]+\))? |const |async |unsafe |extern "C" )*fn (\w+)')
_AS_TRAIT = re.compile(r"^<(.+) as .+>::")
_BRACKETS = re.compile(r"\(anonymous namespace\)::|<[^<>]*>|\([^()]*\)")


def innermost(frames: Sequence[Frame], text: Text) -> str | None:
    """The innermost function of ours on a stack (outermost first), as "path:name"; None where there
    is none."""
    for frame in reversed(frames):
        if _OURS.match(frame.module):
            name = enclosing(text(frame.module), frame.line) if frame.line else None
            return f"{frame.module}:{name or short(frame.name).rpartition('::')[2]}"
    return None


@lru_cache(maxsize=4096)
def enclosing(source: str, line: int) -> str | None:
    """The function of Rust that holds a line. What is inlined at the end of a stack has the name of
    the function that it is inlined into; its line is right."""
    for above in reversed(source.splitlines()[:line]):
        if named := _FN.match(above):
            return named[1]
    return None


@lru_cache(maxsize=65536)
def short(name: str) -> str:
    """A function's name without types and arguments, which fill lines and tell nothing."""
    if whole := _AS_TRAIT.match(name):
        name = whole[1] + "::" + name[whole.end() :]
    while (fewer := _BRACKETS.sub("", name)) != name:
        name = fewer
    return name.strip() or "?"
