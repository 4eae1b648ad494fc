"""Finds state that one benchmark of a suite changes and another reads: globals of a module, and
attributes in the body of a class. Arguments that a called function changes are not seen."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rlox_opt.project.lint.finding import Finding
from rlox_opt.project.lint.source import Benchmark, Function

_CHANGES = {
    "append", "extend", "insert", "pop", "popitem", "popleft", "appendleft", "remove", "clear",
    "add", "discard", "update", "setdefault", "sort", "reverse", "fill", "resize", "shuffle",
    "write", "truncate",
}  # fmt: skip
_CHANGES_SO = ("add_", "remove_", "insert_", "delete_", "set_", "clear_")
_OWN_CLASS = ("type(self)", "self.__class__", "cls")


def shared_state(of: Sequence[Benchmark]) -> Iterator[Finding]:
    """A finding on each benchmark that changes what others read."""
    changes: dict[str, dict[str, Benchmark]] = defaultdict(dict)
    reads: dict[str, set[str]] = defaultdict(set)
    remade = {key for each in of for setup in each.setups() for key in _remade(each, setup)}
    for each in of:
        read, changed = _state(each, each.function)
        for key in read | changed:
            reads[key].add(each.name)
        for key in changed - remade:
            changes[key][each.name] = each
        for setup in each.setups():
            for key in _state(each, setup)[0] - remade:
                reads[key].add(each.name)
    for key, by in changes.items():
        for name, each in by.items():
            if others := sorted(reads[key] - {name}):
                more = f" and {len(others) - 1} more" if len(others) > 1 else ""
                yield Finding(
                    file=each.file,
                    line=each.line,
                    check="shared state",
                    name=name,
                    what=f"it changes {key.rpartition(':')[2]}, which {others[0]}{more} reads",
                    why="what that takes depends on which ran before it, and how often",
                    remedy="make the data in `setup`, or change a copy",
                )


def _state(of: Benchmark, function: Function) -> tuple[set[str], set[str]]:
    """The names read and the names changed, of the state that outlives a function's call."""
    own = _locals(function)
    kept = _assigned(of.home.tree.body) - own
    inside = _of_class(of)
    read: set[str] = set()
    changed: set[str] = set()

    def key(node: ast.expr) -> str | None:
        if isinstance(node, ast.Name) and node.id in kept:
            return f"{of.file}:{node.id}"
        if isinstance(node, ast.Attribute):
            base = ast.unparse(node.value)
            if (base == "self" or base in _OWN_CLASS) and node.attr in inside:
                return _named(inside[node.attr], node.attr)
            named = next((klass for klass in of.classes if klass.name == base), None)
            if named is not None:
                return _named(named, node.attr)
        return None

    def root(node: ast.expr) -> str | None:
        while (found := key(node)) is None and isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return found

    for node in ast.walk(function):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if found := key(node):
                read.add(found)
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):  # assigned or deleted
            of_self = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
            if not of_self and (found := root(node)):
                changed.add(found)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            changes = name in _CHANGES or name.startswith(_CHANGES_SO)
            if changes and (found := root(node.func.value)):
                changed.add(found)
    return read, changed


def _remade(of: Benchmark, setup: Function) -> Iterator[str]:
    """What a setup assigns anew: globals, and attributes of the instance or of the class."""
    declared = {
        name for node in ast.walk(setup) if isinstance(node, ast.Global) for name in node.names
    }
    inside = _of_class(of)
    for node in ast.walk(setup):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in declared:
            yield f"{of.file}:{node.id}"
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            base = ast.unparse(node.value)
            klass = inside.get(node.attr)
            if klass and base in ("self", *_OWN_CLASS, klass.name):
                yield _named(klass, node.attr)


def _named(klass: ast.ClassDef, attribute: str) -> str:
    """The class's attribute as a key. Classes of the same name in other files are kept apart."""
    return f"{id(klass)}:{klass.name}.{attribute}"


def _of_class(of: Benchmark) -> dict[str, ast.ClassDef]:
    """The attributes that the bodies of its class and bases assign, each with its class."""
    return {name: klass for klass in reversed(of.classes) for name in _assigned(klass.body)}


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements at the top of a module or class assign."""
    found = set()
    for node in body:
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            for part in ("body", "orelse", "finalbody"):
                found |= _assigned(getattr(node, part, []))
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        found |= {
            of.id for target in targets for of in ast.walk(target) if isinstance(of, ast.Name)
        }
    return found


def _locals(function: Function) -> set[str]:
    """The names that are local to a function."""
    args = function.args
    own = {of.arg for of in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    own |= {of.arg for of in (args.vararg, args.kwarg) if of}
    declared: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            declared |= {*node.names}
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            own.add(node.id)
    return own - declared
