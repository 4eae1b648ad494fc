"""Benchmarks among pytest tests, as their source shows them, without importing it: tests with the
fixture or the mark `benchmark`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from rlox_opt.system.files import NotReadError, read_text

_FIXTURES = frozenset({"benchmark", "codspeed_benchmark"})
_MARK = re.compile(r"\bmark\.(codspeed_)?benchmark\b")
_IS_FIXTURE = re.compile(r"\bfixture\b")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_PASSED_OVER = re.compile(r"\..*|__pycache__|node_modules|site-packages|build|dist|target|venv")
_FILES = re.compile(r"test_.*\.py|.*_test\.py")
_NAMES = "pytest takes functions whose names begin with test, in classes whose names begin so"
_MANY = 10  # cases, where the source does not show how many


@dataclass
class _File:
    """The benchmarks of a file by line and name, and by name what each costs to try; and whether
    the file has others without such a name, as in a class whose fixture takes `benchmark` for all
    its tests, or where this Python cannot parse it."""

    tests: list[tuple[int, str]] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)
    costs: dict[str, tuple[int, int, bool]] = field(default_factory=dict)
    others: bool = False


def files(folder: Path, listed: Iterable[Path] | None = None) -> list[Path]:
    """The files with benchmarks in a folder, or among those listed; for a file, that file."""
    return sorted(_found(python_files(folder) if listed is None else listed))


def benchmarks(suite: Path, root: Path) -> list[str]:
    """The names of the benchmarks in a folder or file, as pytest has them from its root, without
    parameters, in the source's order."""
    found = _found(python_files(suite))
    return [
        f"{path.relative_to(root)}::{name}" for path, of in found.items() for _, name in of.tests
    ]


def lightest(suite: Path, root: Path, names: Sequence[str]) -> str:
    """The first of the benchmarks that cost least to try: they have the fewest cases, of these the
    fewest fixtures beside `benchmark`, and of these no call of `pedantic`."""
    costs = {
        f"{path.relative_to(root)}::{name}": cost
        for path, of in _found(python_files(suite)).items()
        for name, cost in of.costs.items()
    }
    return min(names, key=costs.__getitem__)


def uncovered(suite: Path, root: Path) -> list[str]:
    """Tests with the fixture that pytest's usual names never collect, one sentence each."""
    return [
        f"{path.relative_to(root)}:{line}: {name} is never collected: {_NAMES}"
        for path, of in _found(python_files(suite)).items()
        for line, name in of.lost
    ]


def beyond(suite: Path, root: Path) -> list[str]:
    """A note on each file with benchmarks that pytest's usual names leave out."""
    return [
        f"{path.relative_to(root)}: its {len(of.tests)} benchmarks are collected, although pytest "
        "alone would not collect that file: it takes test_*.py and *_test.py where its settings "
        "name no others"
        for path, of in _found(python_files(suite)).items()
        if of.tests and not _FILES.fullmatch(path.name)
    ]


def python_files(suite: Path) -> list[Path]:
    """The Python files in a folder, without those of tools and builds; for a file, that file."""
    if not suite.is_dir():
        return [suite] if suite.is_file() and suite.suffix == ".py" else []
    return sorted(
        path
        for path in suite.rglob("*.py")
        if not any(_PASSED_OVER.fullmatch(part) for part in path.relative_to(suite).parts[:-1])
    )


def _found(paths: Iterable[Path]) -> dict[Path, _File]:
    """The files that have benchmarks, with them. Fixtures that take `benchmark`, in conftest.py
    files as well, count as that fixture. A file of tests that names it and cannot be parsed is one
    of them: the Python that runs it may be newer, and otherwise its import reports the error."""
    trees: dict[Path, ast.Module] = {}
    found: dict[Path, _File] = {}
    for path in paths:
        text = ""
        try:
            text = read_text(path, errors="replace")
            if path.suffix == ".py" and ("benchmark" in text or _IS_FIXTURE.search(text)):
                trees[path] = ast.parse(text)
        except (NotReadError, SyntaxError, ValueError, RecursionError):
            if "benchmark" in text and _FILES.fullmatch(path.name):
                found[path] = _File(others=True)
    names = {*_FIXTURES}
    fixtures = [of for tree in trees.values() for of in ast.walk(tree) if _is_fixture(of)]
    while more := {of.name for of in fixtures if _takes(of, names)} - names:
        names |= more
    for path, tree in trees.items():
        of = _File()
        _read(of, tree.body, "", names, marked=_all_marked(tree.body))
        if (of.tests or of.others) and path.name != "conftest.py":
            found[path] = of
    return found


def _read(
    of: _File, body: list[ast.stmt], within: str, names: set[str], marked: bool, cases: int = 1
) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            inner = marked or _is_marked(node) or _all_marked(node.body)
            _read(of, node.body, f"{within}{node.name}::", names, inner, cases * _cases(node))
        elif isinstance(node, _Function):
            takes = _takes(node, names)
            if _is_fixture(node):
                of.others = of.others or (bool(within) and takes)
            elif takes or _is_marked(node) or (marked and node.name.startswith("test")):
                is_test = node.name.startswith("test")
                (of.tests if is_test else of.lost).append((node.lineno, f"{within}{node.name}"))
                more = {each.arg for each in _arguments(node)} - names - {"self"}
                cost = cases * _cases(node), len(more), _is_pedantic(node)
                of.costs[f"{within}{node.name}"] = cost
                of.others = of.others or not is_test
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            _read(of, node.body, within, names, marked, cases)


def _cases(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """The number of cases that the decorators of a test or class make of it."""
    cases = 1
    for of in node.decorator_list:
        if isinstance(of, ast.Call) and ast.unparse(of.func).endswith("parametrize"):
            for values in [*of.args, *(each.value for each in of.keywords)][1:2]:
                shown = len(values.elts) if isinstance(values, (ast.List, ast.Tuple)) else 0
                cases *= shown or _MANY
    return cases


def _is_pedantic(node: ast.AST) -> bool:
    return any(isinstance(of, ast.Attribute) and of.attr == "pedantic" for of in ast.walk(node))


def _is_fixture(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    # What a decorator is called with may name anything, such as a parameter `fixture`.
    return isinstance(node, _Function) and any(
        _IS_FIXTURE.search(ast.unparse(of.func if isinstance(of, ast.Call) else of))
        for of in node.decorator_list
    )


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _takes(node: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> bool:
    return any(of.arg in names for of in _arguments(node))


def _is_marked(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(_MARK.search(ast.unparse(of)) for of in node.decorator_list)


def _all_marked(body: list[ast.stmt]) -> bool:
    """Whether `pytestmark` marks everything in a module or class."""
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(of, ast.Name) and of.id == "pytestmark" for of in node.targets)
        and _MARK.search(ast.unparse(node.value)) is not None
        for node in body
    )
