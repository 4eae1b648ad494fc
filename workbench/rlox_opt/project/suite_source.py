"""The benchmarks of a suite as its source shows them, without importing it: those that asv would
collect, and functions that look like benchmarks and are never collected."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlox_opt.system.files import NotReadError, read_text, readable_text
from rlox_opt.system.output import few

# asv's own patterns, which must match the beginning of a name.
_BENCHMARK = re.compile(
    r"(Time|Timeraw|Mem|PeakMem|Track)[A-Z_].|(time|timeraw|mem|peakmem|track)_."
)
# A name of a benchmark: defined, assigned at the top of a module, or written as a text.
_MADE = re.compile(
    rf"(?m)\bdef\s+(?:{_BENCHMARK.pattern})|^(?:{_BENCHMARK.pattern})\w*\s*=|benchmark_name|"
    rf"setattr\([^\n]*[\"'](?:{_BENCHMARK.pattern})"
)
# Names that are no benchmark's, and that were probably meant to be.
_MEANT = re.compile(
    r"(tests?|bench(mark)?s?|perf|timing|timeit|timer?s?|mem(ory)?|peak_?mem(ory)?|track(ing)?)"
    r"(_|(?=[A-Z])|$)"
)
# Names of a type that a plug-in of asv brings. Of other such types helpers may have the names, as
# of `ray_`.
_OF_PLUG_INS = re.compile(r"tracemalloc_.")
_NAMES = "asv takes names that begin with time_, timeraw_, mem_, peakmem_ or track_"
_HELPERS = re.compile(r"setup|teardown|_")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class _Class:
    """A class at the top of a module."""

    name: str
    bases: list[str]
    methods: dict[str, ast.AST]
    abstract: bool


@dataclass
class _Module:
    """A file of the suite; `name` is asv's, from the suite's folder."""

    name: str
    path: Path
    tree: ast.Module
    classes: dict[str, _Class] = field(default_factory=dict)
    functions: dict[str, ast.AST] = field(default_factory=dict)


def benchmarks(folder: Path) -> list[str]:
    """The names that asv would collect, in the source's order. Benchmarks made during the import,
    by a decorator or by `setattr`, are not among them."""
    modules = [of for of in _modules(folder)[0] if _importable(folder, of.path)]
    every = _classes(modules)
    found = []
    for of in modules:
        prefix = f"{of.name}." if of.name else ""
        found += [f"{prefix}{name}" for name in of.functions if _BENCHMARK.match(name)]
        for name, each in of.classes.items():
            if not name.startswith("_") and not each.abstract:
                methods = dict.fromkeys(_methods(each, of, every))
                found += [f"{prefix}{name}.{one}" for one in methods if _BENCHMARK.match(one)]
    return found


def is_name(name: str) -> bool:
    """Whether asv takes a function with this name for a benchmark."""
    return _BENCHMARK.match(name) is not None


def trees(folder: Path) -> list[tuple[Path, ast.Module]]:
    """The files of a suite that can be read and imported, with their syntax trees."""
    return [(of.path, of.tree) for of in _modules(folder)[0] if _importable(folder, of.path)]


def lightest(folder: Path, names: Sequence[str]) -> str:
    """The first of the benchmarks whose module does least when it is imported. Some modules make
    large inputs, and each process pays for that. One that stands below a decorator, which may take
    it away, comes after all others."""
    modules, _ = _modules(folder)
    work = {of.name: _calls(of.tree) for of in modules}
    decorated = {name for of in modules for name in _decorated(of)}

    def dear(name: str) -> tuple[bool, int]:
        above = [name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]
        calls = next((work[module] for module in above if module in work), work.get("", 0))
        return not decorated.isdisjoint((name, *above)), calls

    return min(names, key=dear)


def _decorated(of: _Module) -> Iterator[str]:
    """The classes, functions and methods of a module that have decorators, by asv's names."""
    prefix = f"{of.name}." if of.name else ""
    for node in _top_level(of.tree.body):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.decorator_list:
                yield f"{prefix}{node.name}"
            for inner in node.body:
                if isinstance(inner, _Function) and inner.decorator_list:
                    yield f"{prefix}{node.name}.{inner.name}"


def _calls(tree: ast.Module) -> int:
    """The number of calls and loops that an import executes."""
    found, left = 0, [*ast.iter_child_nodes(tree)]
    while left:
        node = left.pop()
        found += isinstance(node, (ast.Call, ast.For, ast.While, ast.comprehension))
        if not isinstance(node, (*_Function, ast.Lambda)):
            left += ast.iter_child_nodes(node)
    return found


def any_benchmark(folder: Path) -> bool:
    """Whether the modules of a folder contain anything that could be a benchmark, however it is
    made."""
    packages = [folder]
    for package in packages:
        inner = (path.parent for path in sorted(package.glob("*/__init__.py")))
        packages += [path for path in inner if not path.is_symlink()]  # links may form a circle
    return any(
        _MADE.search(readable_text(path)) for of in packages for path in sorted(of.glob("*.py"))
    )


def uncovered(folder: Path) -> list[str]:
    """Functions in the suite in `folder` that look like benchmarks and are never collected, with
    file, line, name and reason, one sentence each. Helpers, base classes and functions that are
    called are not among them."""
    modules, broken = _modules(folder)
    used = _used(of.tree for of in modules)
    found = [*broken]
    for of in modules:
        where = f"{of.path.relative_to(folder.parent)}"
        if not _importable(folder, of.path):
            inner = sum(_BENCHMARK.match(name) is not None for name in _defined(of))
            if inner:
                found.append(
                    f"{where}: its {inner} benchmarks are never collected: "
                    f"{_without_init(folder, of.path)} has no __init__.py"
                )
            continue
        for line, told in sorted(_of_module(of, used)):
            found.append(f"{where}:{line}: {told}")
    return found


def of_plug_ins(folder: Path) -> list[str]:
    """A sentence on the benchmarks of the suite in `folder` that only a plug-in of asv runs; none
    without such. Functions that are called are helpers."""
    modules = [of for of in _modules(folder)[0] if _importable(folder, of.path)]
    used = _used(of.tree for of in modules)
    names = (name for of in modules for name in _defined(of) if _OF_PLUG_INS.match(name))
    found = [*dict.fromkeys(name for name in names if not used[name])]
    told = f"{folder.name}: a plug-in of asv runs {few(found)}, and rlox-opt does not"
    return [told] if found else []


def _of_module(of: _Module, used: Counter[str]) -> Iterator[tuple[int, str]]:
    is_test = of.name.rpartition(".")[2].startswith("test")
    if any(map(_BENCHMARK.match, _defined(of))) and not is_test:
        for node in of.tree.body:
            if isinstance(node, _Function) and _is_meant(node, used):
                yield node.lineno, f"{node.name} is never collected: {_NAMES}"
    yield from _twice(of.tree.body, "")
    for node in of.tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _of_class(node, used)


def _of_class(node: ast.ClassDef, used: Counter[str]) -> Iterator[tuple[int, str]]:
    methods = [each for each in node.body if isinstance(each, _Function)]
    ours = [each for each in methods if _BENCHMARK.match(each.name)]
    if ours and node.name.startswith("_") and not used[node.name]:
        yield (
            node.lineno,
            f"{node.name}: its {len(ours)} benchmarks are never collected: the name of the class "
            "begins with an underscore, and no other class has it for a base",
        )
        return
    if ours:
        for each in methods:
            if _is_meant(each, used):
                yield each.lineno, f"{node.name}.{each.name} is never collected: {_NAMES}"
    yield from _twice(node.body, f"{node.name}.")
    for inner in node.body:
        if isinstance(inner, ast.ClassDef) and not used[inner.name]:
            names = [
                each.name
                for each in inner.body
                if isinstance(each, _Function) and _BENCHMARK.match(each.name)
            ]
            if names:
                yield (
                    inner.lineno,
                    f"{node.name}.{inner.name}: its {len(names)} benchmarks are never collected: "
                    "a class within a class is not looked into",
                )


def _is_meant(node: ast.FunctionDef | ast.AsyncFunctionDef, used: Counter[str]) -> bool:
    """Whether a function has a benchmark-like name and nothing uses it."""
    name = node.name
    plain = not node.decorator_list and not used[name] and not _HELPERS.match(name)
    return plain and not _BENCHMARK.match(name) and _MEANT.match(name) is not None


def _twice(body: list[ast.stmt], prefix: str) -> Iterator[tuple[int, str]]:
    """Benchmarks that a later definition of the same name replaces."""
    last: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for node in body:
        if isinstance(node, _Function) and _BENCHMARK.match(node.name) and not node.decorator_list:
            if earlier := last.get(node.name):
                yield (
                    earlier.lineno,
                    f"{prefix}{node.name} is never collected: line {node.lineno} defines another "
                    "of that name",
                )
            last[node.name] = node


def _modules(folder: Path) -> tuple[list[_Module], list[str]]:
    """The files of a suite, and a sentence on each that cannot be read."""
    found, broken = [], []
    for path in _files(folder):
        inner = path.relative_to(folder)
        parts = inner.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        try:
            of = _Module(name, path, ast.parse(read_text(path)))
        except (NotReadError, SyntaxError, ValueError, RecursionError) as error:
            why = error.why if isinstance(error, NotReadError) else f"is no Python: {error}"
            broken.append(f"{path.relative_to(folder.parent)}: {why}")
            continue
        for node in _top_level(of.tree.body):
            if isinstance(node, ast.ClassDef):
                of.classes[node.name] = _class(node)
            elif isinstance(node, _Function):
                of.functions[node.name] = node
        found.append(of)
    return found, broken


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The definitions of a module, also those under a condition."""
    for node in body:
        yield node
        for part in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler, ast.For)):
                yield from _top_level(getattr(node, part, ()))


def _class(node: ast.ClassDef) -> _Class:
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    methods = {each.name: each for each in _top_level(node.body) if isinstance(each, _Function)}
    abstract = any(
        "abstract" in ast.unparse(mark) for each in methods.values() for mark in each.decorator_list
    )
    return _Class(node.name, bases, dict(methods), abstract)


def _classes(modules: Iterable[_Module]) -> dict[str, _Class]:
    return {name: each for of in modules for name, each in of.classes.items()}


def _methods(of: _Class, module: _Module, every: dict[str, _Class], depth: int = 8) -> list[str]:
    """The methods of a class, with those inherited from classes of the suite."""
    names = [*of.methods]
    for base in of.bases if depth else ():
        inner = module.classes.get(base) or every.get(base)
        if inner and inner is not of:
            names += _methods(inner, module, every, depth - 1)
    return names


def _defined(of: _Module) -> list[str]:
    """The names of a module's functions and of its classes' methods."""
    return [*of.functions, *(name for each in of.classes.values() for name in each.methods)]


def _used(trees: Iterable[ast.Module]) -> Counter[str]:
    """How often names are used, apart from their definitions and from attributes that they are
    given (`test_it.number = 3`); texts count, for `getattr`."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    told: Counter[str] = Counter(
        name
        for node in nodes
        for name in (
            getattr(node, "id", None),
            getattr(node, "attr", None),
            getattr(node, "value", None) if isinstance(node, ast.Constant) else None,
        )
        if isinstance(name, str)
    )
    return told - Counter(
        node.value.id
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
    )


def _files(folder: Path) -> list[Path]:
    """The Python files outside hidden folders and caches."""
    return sorted(
        path
        for path in folder.rglob("*.py")
        if path.is_file()
        and not any(
            part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts
        )
    )


def _importable(folder: Path, path: Path) -> bool:
    return not _without_init(folder, path)


def _without_init(folder: Path, path: Path) -> str:
    """The folder above a file that is no package, so that asv ignores the file; "" without one."""
    for above in reversed(path.relative_to(folder).parents):
        if above != Path() and not (folder / above / "__init__.py").exists():
            return f"{folder.name}/{above}"
    return ""
