"""Functions that a change touches and that no benchmark calls: a comparison cannot see them.

A function is touched if its code differs; comments, docstring and position do not count. It is
reached if a call of a benchmark enters it on head's side, in the benchmark's own process. Compiled
code cannot be traced in this way.
"""

from __future__ import annotations

import ast
import contextlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError, ProcessEndedError
from rlox_opt.project import releases
from rlox_opt.project.builds import Artefact
from rlox_opt.project.commits import Commits
from rlox_opt.system.output import few

COMPILED = {
    ".c", ".cc", ".cpp", ".cu", ".cxx", ".f", ".f90", ".go", ".h", ".hpp", ".m", ".pxd", ".pxi",
    ".pyx", ".rs", ".zig",
}  # fmt: skip
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Touched:
    """A function of head: its file and line in the commit, and its name within the file. `inner` is
    its file in the build."""

    file: str
    line: int
    name: str
    inner: str

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it."""
        return self.inner, self.name


@dataclass
class Coverage:
    """Which functions of a change the benchmarks reach. `compiled` are changed files that cannot be
    traced. `traced` are the benchmarks whose calls were traced, `late` those for which there was no
    time, `untraced` the others: they run in other processes, or they fail."""

    touched: tuple[Touched, ...] = ()
    compiled: tuple[str, ...] = ()
    reached: set[tuple[str, str]] = field(default_factory=set)
    traced: list[str] = field(default_factory=list)
    untraced: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def blind(self) -> list[Touched]:
        """The functions that no traced benchmark reaches."""
        return [of for of in self.touched if of.key not in self.reached]

    def decided(self) -> bool:
        """Whether no other benchmark could reach what `blind` names."""
        return not self.blind() or bool(self.traced and not self.late)


def change(commits: Commits, base: Artefact, head: Artefact) -> Coverage:
    """The functions that a change touches, none of them reached yet. Nothing is known of releases,
    since no commit has their source."""
    sides = base.revision, head.revision
    if any(releases.is_one(of.text) for of in sides):
        return Coverage()
    touched: list[Touched] = []
    compiled = []
    for before, after in commits.changed(sides[0].commit, sides[1].commit):
        path = PurePosixPath(after or before)
        if path.suffix in COMPILED:
            compiled.append(f"{path}")
        inner = _installed(head, path) if after and path.suffix == ".py" else None
        if inner is None:
            continue
        old = functions(commits.text(sides[0].commit, before)) if before else {}
        new = functions(commits.text(sides[1].commit, after))
        touched += [
            Touched(after, node.lineno, name, inner)
            for name, node in new.items()
            if name not in old or code(old[name]) != code(node)
        ]
    return Coverage(tuple(touched), tuple(compiled))


def look(of: Coverage, packages: Packages, names: Sequence[str], budget_s: float) -> None:
    """Call each benchmark once on head's side, until every touched function is reached."""
    if not of.touched:
        return
    until = time.monotonic() + budget_s
    lines = _Lines(packages.sides["head"].folder)
    there = packages.listed()["head"].benchmarks
    of.untraced += [name for name in names if there[name].type == "timeraw"]
    left = [name for name in names if there[name].type != "timeraw"]
    while left:
        with packages.alone("head", random.Random(0)) as ask:
            while left:
                name = left.pop(0)
                seconds = until - time.monotonic()
                if not of.blind():
                    return
                if seconds <= 0:
                    of.late += [name, *left]
                    return
                ask.limit_s = min(ask.limit_s, seconds)
                try:
                    packages.prepare(ask, "head", name, alone=0)
                    entered = ask("reached", 0)
                except ContestError as error:
                    late = time.monotonic() >= until
                    (of.late if late else of.untraced).append(name)
                    if isinstance(error, ProcessEndedError):
                        break
                    continue
                of.traced.append(name)
                of.reached |= {(file, lines.name(file, line)) for file, line in entered}


def told(of: Coverage) -> Iterator[str]:
    """What the user should know of it, in a line or two."""
    blind = of.blind()
    named = few([f"{each.name} ({each.file}:{each.line})" for each in blind])
    rest = f"; {len(of.untraced)} could not be traced" if of.untraced else ""
    if blind and of.late:
        yield (
            f"Not decided whether a benchmark reaches {named}, of {len(of.touched)} functions that "
            f"the change touches: no time to trace {few(of.late)}; a larger --budget traces "
            f"more{rest}."
        )
    elif blind and of.traced:
        yield (
            f"Blind: no benchmark of the {len(of.traced)} traced reaches {named}, "
            f"of {len(of.touched)} functions that the change touches{rest}."
        )
    elif blind:
        yield (
            f"Not decided whether a benchmark reaches the {len(of.touched)} functions that the "
            f"change touches: none of {len(of.untraced)} could be traced."
        )
    if of.compiled:
        yield (
            f"Compiled: not decided whether a benchmark reaches what changes in {few(of.compiled)}."
        )


def _installed(head: Artefact, path: PurePosixPath) -> str | None:
    """Where a commit's file lies in its build; None if it is not a part of the package."""
    for start in range(len(path.parts)):
        inner = PurePosixPath(*path.parts[start:])
        if inner.parts[0].removesuffix(".py") in head.packages and (head.folder / inner).is_file():
            return f"{inner}"
    return None


def functions(text: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a source, by their names with those of the classes and functions around
    them; none if the text is not Python."""
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}

    def within(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (*_FUNCTION, ast.ClassDef)):
                inner = f"{prefix}{child.name}."
            if isinstance(child, _FUNCTION):
                found[inner[:-1]] = child
            within(child, inner)

    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        within(ast.parse(text), "")
    return found


class _Bare(ast.NodeTransformer):
    """Removes docstrings, and the bodies of inner functions and classes."""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (*_FUNCTION, ast.ClassDef)):
            return ast.Pass()
        return self.generic_visit(node)


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The first line of a function, with its decorators."""
    return min([node.lineno, *(of.lineno for of in node.decorator_list)])


def code(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function's code without its docstring and its inner functions, which are compared on their
    own."""
    body = node.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body = body[1:] if isinstance(first.value.value, str) else body
    shown = [ast.dump(node.args), *map(ast.dump, node.decorator_list)]
    for each in body:
        # A copy, since the node is also used as a part of others.
        copied = ast.parse(ast.unparse(each)).body[0]
        shown.append(ast.dump(_Bare().visit(copied)))
    return "\n".join(shown)


class _Lines:
    """The names of functions by their first lines, in the files of a build."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Mapping[int, str]] = {}

    def name(self, file: str, line: int) -> str:
        """The name of the function that begins there; "" for others, such as a lambda."""
        if file not in self._files:
            text = ""
            with contextlib.suppress(OSError):
                text = (self._folder / file).read_text(errors="replace")
            self._files[file] = {first_line(node): name for name, node in functions(text).items()}
        return self._files[file].get(line, "")
