"""Finds random data of a suite that have no seed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlox_opt.project.lint.finding import Finding
from rlox_opt.project.lint.source import Function, Module

# Functions that draw from the one generator of their module; and functions that make a generator of
# their own, which without an argument is seeded by the system.
_SHARED = ("random.", "numpy.random.")
_MAKERS = {
    "random.Random", "numpy.random.default_rng", "numpy.random.RandomState",
    "numpy.random.SeedSequence", "numpy.random.PCG64", "numpy.random.MT19937",
    "numpy.random.Philox", "numpy.random.SFC64",
}  # fmt: skip
_NEVER_SEEDED = {"random.SystemRandom", "os.urandom", "uuid.uuid4"}
_SEEDS = {"random.seed", "numpy.random.seed"}
_NO_DRAW = {"Generator", "get_state", "set_state", "getstate", "setstate", "BitGenerator"}


def unseeded(module: Module) -> Iterator[Finding]:
    """Each place of a module that draws without a seed: one for each function and what it calls."""
    names = _imported(module.tree)
    calls = [(where, node, _called(node, names)) for where, node in _calls(module.tree, "")]
    seeded = {of.rpartition(".")[0] + "." for _, node, of in calls if of in _SEEDS and _given(node)}
    told = set()
    for where, node, of in calls:
        if (where, of) in told:
            continue
        told.add((where, of))
        own = of in _NEVER_SEEDED or of.startswith("secrets.")
        own = own or (of in _MAKERS and not _given(node))
        parent, _, last = of.rpartition(".")
        drawn = f"{parent}." in _SHARED and of not in _MAKERS | _SEEDS | _NEVER_SEEDED
        drawn = drawn and last not in _NO_DRAW and f"{parent}." not in seeded
        if not own and not drawn:
            continue
        yield Finding(
            file=module.file,
            line=node.lineno,
            check="unseeded",
            name=where or "the module",
            what=f"{of} draws without a seed",
            why=(
                "base and head get other data, whose difference looks like that of the commits"
                if own
                else "every run draws other data, so its times are no others' (rlox-opt seeds this "
                "alike on both sides; asv does not)"
            ),
            remedy=(
                f"call {parent}.seed(0) first"
                if drawn
                else f"give it a seed: {last}(0)"
                if of in _MAKERS
                else "draw from random.Random(0)"
            ),
        )


def _calls(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Call]]:
    """Calls in the order of the source, each with the function around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, Function)):
            yield from _calls(child, f"{where}.{child.name}" if where else child.name)
            continue
        if isinstance(child, ast.Call):
            yield where, child
        yield from _calls(child, where)


def _imported(tree: ast.Module) -> dict[str, str]:
    """What the names that a module imports stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for of in node.names:
                top = of.name.partition(".")[0]
                names[of.asname or top] = of.name if of.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {of.asname or of.name: f"{node.module}.{of.name}" for of in node.names}
    return names


def _called(call: ast.Call, names: dict[str, str]) -> str:
    """The full name of what is called; "" if it is not imported."""
    parts: list[str] = []
    of = call.func
    while isinstance(of, ast.Attribute):
        parts.insert(0, of.attr)
        of = of.value
    if isinstance(of, ast.Name) and of.id in names:
        return ".".join([names[of.id], *parts])
    return ""


def _given(call: ast.Call) -> bool:
    """Whether it has an argument other than None."""
    values = [*call.args, *(of.value for of in call.keywords)]
    return any(not (isinstance(of, ast.Constant) and of.value is None) for of in values)
