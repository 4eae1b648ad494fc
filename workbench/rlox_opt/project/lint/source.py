"""The benchmarks of an asv suite as its source has them: with their class, its bases, and their
setups."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlox_opt.project import suite_source

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """A file of the suite. `file` is its path from the folder that contains the suite."""

    file: str
    tree: ast.Module
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)


@dataclass
class Benchmark:
    """A function that asv collects in `module`, and that is defined in `home`. A class may inherit
    it; `classes` are that class and its bases. `whole` says whether all bases belong to the suite,
    so that nothing outside it can set the benchmark up."""

    name: str
    module: Module
    function: Function
    home: Module
    classes: list[ast.ClassDef]
    whole: bool

    @property
    def file(self) -> str:
        """The file that defines it."""
        return self.home.file

    @property
    def line(self) -> int:
        """The line in that file."""
        return self.function.lineno

    def setups(self) -> list[Function]:
        """The setups of its class and of its module, whose names asv compares without case."""
        return [*self._hooks("setup")]

    def has_cache(self) -> bool | None:
        """Whether `setup_cache` gives it a first argument; None if only running it would show."""
        for hook in self._hooks("setup_cache"):
            said = [node.value for node in ast.walk(hook) if isinstance(node, ast.Return)]
            return any(value is not None for value in said)
        named = "setup_cache"
        return None if self.attribute(named) is not None else False

    def _hooks(self, name: str) -> Iterator[Function]:
        """The nearest such function of its class, and the one of its module."""
        of_class = (of for klass in self.classes for of in methods(klass).values())
        if hook := next((of for of in of_class if of.name.lower() == name), None):
            yield hook
        for of in self.module.functions.values():
            if of.name.lower() == name:
                yield of

    def attribute(self, name: str) -> ast.expr | None:
        """The value assigned to an attribute of asv's: by the function, its class, or its
        module."""
        bodies = [klass.body for klass in self.classes] + [self.module.tree.body]
        for body in bodies:
            for node in body:
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        of = ast.unparse(target)
                        if of in (f"{self.function.name}.{name}", f"{_own(self)}.{name}"):
                            return node.value
        for body in bodies:
            for node in body:
                targets = node.targets if isinstance(node, ast.Assign) else []
                targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
                if any(isinstance(of, ast.Name) and of.id == name for of in targets):
                    assert isinstance(node, (ast.Assign, ast.AnnAssign))
                    return node.value
        return None


def _own(of: Benchmark) -> str:
    """The function's name in its module: `Work.time_it`."""
    return f"{of.classes[0].name}.{of.function.name}" if of.classes else of.function.name


def modules(folder: Path) -> list[Module]:
    """The readable modules of the suite in `folder`."""
    found = []
    for path, tree in suite_source.trees(folder):
        of = Module(f"{path.relative_to(folder.parent)}", tree)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                at_top = not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                if at_top and isinstance(child, ast.ClassDef):
                    of.classes[child.name] = child
                elif at_top and isinstance(child, Function):
                    of.functions[child.name] = child
        found.append(of)
    return found


def benchmarks(folder: Path, of: list[Module]) -> list[Benchmark]:
    """The benchmarks of a suite, in the order of its source."""
    every = {name: (klass, module) for module in of for name, klass in module.classes.items()}
    home = {id(klass): module for module in of for klass in module.classes.values()}
    found = []
    for module in of:
        inner = Path(module.file).with_suffix("").parts[1:]
        parts = inner[:-1] if inner and inner[-1] == "__init__" else inner
        named = ".".join(parts)
        prefix = f"{named}." if named else ""
        for name, function in module.functions.items():
            if suite_source.is_name(name):
                found.append(Benchmark(f"{prefix}{name}", module, function, module, [], True))
        for name, klass in module.classes.items():
            if name.startswith("_"):
                continue
            classes, whole = _line_of(klass, module, every)
            there: dict[str, tuple[Function, ast.ClassDef]] = {}
            for each in reversed(classes):
                there |= {method: (f, each) for method, f in methods(each).items()}
            for method, (function, defined) in there.items():
                if suite_source.is_name(method):
                    full = f"{prefix}{name}.{method}"
                    own = home[id(defined)]
                    found.append(Benchmark(full, module, function, own, classes, whole))
    collected = {*suite_source.benchmarks(folder)}
    return [each for each in found if each.name in collected]


def methods(klass: ast.ClassDef) -> dict[str, Function]:
    """The functions that the body of a class defines."""
    return {node.name: node for node in klass.body if isinstance(node, Function)}


def loads(node: ast.AST) -> set[str]:
    """The names that are read in a node."""
    return {
        of.id for of in ast.walk(node) if isinstance(of, ast.Name) and isinstance(of.ctx, ast.Load)
    }


def _line_of(
    klass: ast.ClassDef, module: Module, every: dict[str, tuple[ast.ClassDef, Module]]
) -> tuple[list[ast.ClassDef], bool]:
    """A class and its bases within the suite, the nearest first; and whether those are all
    bases."""
    line, left, whole = [], [(klass, module)], not klass.keywords and not klass.decorator_list
    while left:
        of, where = left.pop(0)
        if of in line:
            continue
        line.append(of)
        for base in of.bases:
            name = ast.unparse(base).rpartition(".")[2]
            if name in where.classes:
                left.append((where.classes[name], where))
            elif name in every:
                left.append(every[name])
            else:
                whole = whole and name in ("object", "ABC")
    return line, whole
