"""Which function of the project's own a stack was in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from rlox_opt.project.project import Project
from rlox_opt.sampling.samples import Frame

# The source in a file of the project: "" if the file is not there, None if it is not the project's.
Text = Callable[[str], str | None]

_FN = re.compile(r'^\s*(?:pub(?:\([\w ]+\))? |const |async |unsafe |extern "C" )*fn (\w+)')
_AS_TRAIT = re.compile(r"^<(.+) as .+>::")
_BRACKETS = re.compile(r"\(anonymous namespace\)::|<[^<>]*>|\([^()]*\)")


def own(project: Project, read: Callable[[str], str]) -> Text:
    """The project's own files, by path; `read` gives the source in one."""
    ours = re.compile(project.settings.layers.own or r"(?!)")
    return lru_cache(maxsize=None)(lambda path: read(path) if ours.search(path) else None)


def innermost(frames: Sequence[Frame], text: Text) -> str | None:
    """The innermost function of the project on a stack (outermost first), as "path:name"; None if
    there is none."""
    for frame in reversed(frames):
        source = text(frame.module)
        if source is not None:
            name = enclosing(source, frame.line) if frame.line else None
            return f"{frame.module}:{name or short(frame.name).rpartition('::')[2]}"
    return None


@lru_cache(maxsize=4096)
def enclosing(source: str, line: int) -> str | None:
    """The Rust function that contains a line. An inlined function has the name of the function that
    it is inlined into, but its line is right."""
    for above in reversed(source.splitlines()[:line]):
        if named := _FN.match(above):
            return named[1]
    return None


@lru_cache(maxsize=65536)
def short(name: str) -> str:
    """A function's name without types and arguments, which are long and say little."""
    if whole := _AS_TRAIT.match(name):
        name = whole[1] + "::" + name[whole.end() :]
    while (fewer := _BRACKETS.sub("", name)) != name:
        name = fewer
    return name.strip() or "?"
