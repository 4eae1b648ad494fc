"""What differs between the sources of two builds, as far as a sampled stack can be compared with
it: the functions that a change touches, and the lines that it adds.

The installed files of both sides are read, so that this works for releases and working trees as it
does for commits. Builds contain no sources of compiled code. For those, the commits give the names
of the functions around changed lines.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from rlox_opt.project.blind import COMPILED, code, first_line, functions
from rlox_opt.project.commits import Commits

_Node = ast.FunctionDef | ast.AsyncFunctionDef
# The beginning of a function in Rust, in Cython, and in C and similar languages. Its name is the
# first group that matches.
_BEGINS = re.compile(
    r"^\s*(?:pub(?:\([\w ]+\))? |const |async |unsafe |extern \"C\" )*fn (\w+)"
    r"|^\s*(?:cp?def|def)\s+(?:[\w\[\]:, *]+\s)?\*?(\w+)\s*\("
    r"|^(?!\s|#|//|typedef|return|else|using|namespace)[\w:<>*&,~ ]*?\b(\w+)\s*\([^;]*$"
)


@dataclass(frozen=True)
class File:
    """One file of both sides; "" for a side that lacks it."""

    base: str
    head: str

    @cached_property
    def _of(self) -> Mapping[str, Mapping[str, _Node]]:
        return {"base": functions(self.base), "head": functions(self.head)}

    @cached_property
    def touched(self) -> frozenset[str]:
        """Names of the functions that differ, of either side."""
        if self.base == self.head:
            return frozenset()
        old, new = self._of["base"], self._of["head"]
        return frozenset(
            name
            for name in {*old, *new}
            if name not in old or name not in new or code(old[name]) != code(new[name])
        )

    def function(self, side: str, line: int) -> str | None:
        """The innermost function that contains a line."""
        holding = [
            (node.end_lineno or node.lineno, -node.lineno, name)
            for name, node in self._of[side].items()
            if first_line(node) <= line <= (node.end_lineno or node.lineno)
        ]
        return min(holding)[2] if holding else None

    def begins(self, name: str) -> int | None:
        """The line where a function begins in head, or if it is not there, in base."""
        node = self._of["head"].get(name) or self._of["base"].get(name)
        return node.lineno if node else None

    @cached_property
    def _pairs(self) -> Mapping[int, int]:
        """Line numbers of head by those of the equal lines of base."""
        old, new = self.base.splitlines(), self.head.splitlines()
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        return {b.a + n + 1: b.b + n + 1 for b in blocks for n in range(b.size)}

    @cached_property
    def new(self) -> frozenset[int]:
        """The lines of head that base lacks."""
        return frozenset(range(1, len(self.head.splitlines()) + 1)) - {*self._pairs.values()}

    def in_head(self, side: str, line: int) -> int | None:
        """The number of the same line in head; None if head lacks it."""
        return line if side == "head" else self._pairs.get(line)

    def text(self, line: int) -> str:
        """The text of a line of head."""
        lines = self.head.splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""


@dataclass
class Changed:
    """The differences between two builds in these folders. `compiled` are names of functions in
    compiled sources that the change touches."""

    base: Path
    head: Path
    compiled: frozenset[str] = frozenset()
    _files: dict[str, File] = field(default_factory=dict)

    def file(self, inner: str) -> File:
        """A file by its path within the builds."""
        if inner not in self._files:
            self._files[inner] = File(*(_text(folder / inner) for folder in (self.base, self.head)))
        return self._files[inner]


def compiled(commits: Commits, base: str, head: str) -> frozenset[str]:
    """Names of the functions in compiled sources that the change between two commits touches: those
    with an added or removed line. Where a function begins is found by patterns."""
    names: set[str] = set()
    for before, after in commits.changed(base, head):
        if PurePosixPath(after or before).suffix in COMPILED:
            old = commits.text(base, before).splitlines() if before else []
            new = commits.text(head, after).splitlines() if after else []
            matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
            for what, a, b, c, d in matcher.get_opcodes():
                if what != "equal":
                    names.update(_around(old, a, b))
                    names.update(_around(new, c, d))
    return frozenset(names)


def _around(lines: list[str], first: int, end: int) -> Iterator[str]:
    """The functions that begin in these lines, and the function around the first line."""
    for number in range(min(first, len(lines) - 1), -1, -1):
        if name := _begun(lines[number]):
            yield name
            break
    yield from filter(None, map(_begun, lines[first:end]))


def _begun(line: str) -> str | None:
    found = _BEGINS.match(line)
    return next(filter(None, found.groups()), None) if found else None


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
