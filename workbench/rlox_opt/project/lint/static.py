"""Faults of an asv suite that its source shows, without importing it.

Names are followed within a function. What another function does with its arguments is not seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rlox_opt.project import suite_source
from rlox_opt.project.lint.finding import Finding
from rlox_opt.project.lint.shared import shared_state
from rlox_opt.project.lint.source import Benchmark, Function, benchmarks, loads, modules
from rlox_opt.project.lint.unseeded import unseeded

_SENTENCE = re.compile(r"(?P<file>.*?\.py)(:(?P<line>\d+))?: (?P<rest>.*)", re.DOTALL)
_NAMED = re.compile(r"(?P<name>[\w.]+)(: its| is) (?P<what>.*)", re.DOTALL)
_SEES_ALL = {"locals", "vars", "eval", "exec"}


def findings(folder: Path) -> list[Finding]:
    """The findings on the suite of asv benchmarks in `folder`, ordered by file and line."""
    every = modules(folder)
    of = benchmarks(folder, every)
    found = [
        *map(uncollected, suite_source.uncovered(folder)),
        *(each for benchmark in of for each in _unused(benchmark)),
        *(each for module in every for each in unseeded(module)),
        *shared_state(of),
    ]
    return sorted({*found}, key=lambda each: (each.file, each.line, each.name, each.what))


def uncollected(sentence: str) -> Finding:
    """A finding made of a sentence that a kind of suites gives."""
    at = _SENTENCE.match(sentence)
    rest = at["rest"] if at else sentence
    named = _NAMED.match(rest)
    is_one = named is not None and "never collected" in rest
    return Finding(
        file=at["file"] if at else "",
        line=int(at["line"] or 0) if at else 0,
        check="uncollected",
        name=named["name"] if named and is_one else "the file",
        what=named["what"] if named and is_one else rest,
        why="nothing runs it, so what becomes slower there goes unseen",
        remedy="name it so that asv collects it, or take it out",
    )


def _unused(of: Benchmark) -> Iterator[Finding]:
    """Parameters that neither the function nor its setup reads, so that each value times the same
    work."""
    cached = of.has_cache()
    params = of.attribute("params")
    if params is None or cached is None or not of.whole or of.function.decorator_list:
        return
    if of.attribute("setup") is not None:  # it names a function that may be anywhere
        return
    first = bool(of.classes) + cached
    readers = [of.function, *of.setups()]
    names = _positional(of.function)[first:]
    for number, values in enumerate(_axes(params, len(names))):
        # A module's setup has no `self`.
        starts = [first if of.classes and each not in _of_module(of) else int(cached)
                  for each in readers]  # fmt: skip
        if values is not None and values < 2:
            continue
        if any(_reads(each, start + number) for each, start in zip(readers, starts, strict=True)):
            continue
        called = names[number] if number < len(names) else f"number {number + 1}"
        often = f"{values} times" if values else "once for each value"
        yield Finding(
            file=of.file,
            line=of.line,
            check="unused parameter",
            name=of.name,
            what=f"neither it nor its setup reads the parameter {called}",
            why=f"the same work is timed {often}, by different names",
            remedy="use the parameter, or take it out of `params`",
        )


def _of_module(of: Benchmark) -> list[Function]:
    return [*of.module.functions.values()]


def _axes(params: ast.expr, arity: int) -> list[int | None]:
    """The number of values of each parameter, where the source shows it."""
    if isinstance(params, (ast.List, ast.Tuple)) and params.elts:
        if isinstance(params.elts[0], (ast.List, ast.Tuple)):
            return [_length(each) for each in params.elts]
        if all(isinstance(each, (ast.Constant, ast.UnaryOp)) for each in params.elts):
            return [len(params.elts)]
    return [None] * arity


def _length(values: ast.expr) -> int | None:
    if not isinstance(values, (ast.List, ast.Tuple)):
        return None
    if any(isinstance(each, ast.Starred) for each in values.elts):
        return None
    return len(values.elts)


def _positional(function: Function) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def _reads(function: Function, position: int) -> bool:
    """Whether a function reads its argument at this position."""
    read = {name for node in function.body for name in loads(node)}
    if read & _SEES_ALL:
        return True
    names = _positional(function)
    if position < len(names):
        return names[position] in read
    rest = function.args.vararg
    return rest is not None and rest.arg in read
