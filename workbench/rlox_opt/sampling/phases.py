"""Which phase of the program a sample was taken in, by its source line or by its time.

By line: this suits a sampler that names Python lines and gives no times. The phase of a stack is
read from the blocks that enclose each frame's current line: `with timing.add_time("literal"):` and
`span`. The same is done for `torch.no_grad()`.
By time: a sampler that stamps its samples with the monotonic clock is joined with the spans.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlox_opt.sampling.attribution import nearest
from rlox_opt.sampling.layers import GRAD
from rlox_opt.sampling.samples import Frame
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.system.files import NotReadError, read_text

# Parts of torch's work, other than GRAD.
BACKWARD, OPTIMIZER, NO_GRAD = "backward", "optimizer", "no_grad"
_BLOCKS = frozenset({"add_time", "timeit", "time_avg", "span"})
_MODES = {"no_grad": NO_GRAD, "inference_mode": NO_GRAD, "enable_grad": GRAD}
_OPTIMIZING = re.compile(r"(^|/)torch/(optim/\w+|nn/utils/clip_grad)\.py$")


Naming = Callable[[ast.expr], str | None]  # a block's name, from its `with` statement's expression


@lru_cache(maxsize=1024)
def _blocks(
    file: str, naming: Naming
) -> dict[str, list[tuple[int, int, int, int, tuple[str, ...]]]]:
    """The named blocks of a file, by function: first and last line of the function, first and last
    line of the block, and the block's names."""
    try:
        tree = ast.parse(read_text(Path(file)))
    except (NotReadError, SyntaxError, ValueError):
        return {}
    blocks: dict[str, list[tuple[int, int, int, int, tuple[str, ...]]]] = {}

    def visit(node: ast.AST, function: str, first: int, last: int) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function, first, last = node.name, node.lineno, node.end_lineno or node.lineno
            decorated = [_decorator(item, function, naming) for item in node.decorator_list]
            if spans := tuple(name for name in decorated if name):
                blocks.setdefault(function, []).append((first, last, first, last, spans))
        elif isinstance(node, ast.With):
            names = tuple(name for item in node.items if (name := naming(item.context_expr)))
            if names:
                body = (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
                blocks.setdefault(function, []).append((first, last, *body, names))
        for child in ast.iter_child_nodes(node):
            visit(child, function, first, last)

    visit(tree, "<module>", 0, 1 << 30)
    return blocks


def _phase(call: ast.expr) -> str | None:
    """The literal of `<anything>.add_time("literal")`, or of `span("literal")`."""
    match call:
        case ast.Call(
            func=ast.Attribute(attr=called) | ast.Name(id=called),
            args=[ast.Constant(value=str(name))],
        ):
            return name if called in _BLOCKS else None
    return None


def _grad_mode(call: ast.expr) -> str | None:
    """The part of torch's work that `torch.no_grad()` and its like make of a block."""
    match call:
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=arguments):
            if called == "set_grad_enabled":
                literal = [of.value for of in arguments if isinstance(of, ast.Constant)]
                return None if not literal else GRAD if literal[0] else NO_GRAD
            return _MODES.get(called)
    return None


def _decorator(item: ast.expr, function: str, naming: Naming) -> str | None:
    """The name that `@span` or `@span("literal")` gives a function."""
    match item:
        case ast.Attribute(attr="span") | ast.Name(id="span"):
            return function if naming is _phase else None
    return naming(item)


@lru_cache(maxsize=65536)
def _names_at(file: str, function: str, line: int, naming: Naming) -> tuple[str, ...]:
    names: list[str] = []
    # Blocks were found outermost first, so their order in the list is the order of nesting.
    for first, last, start, end, block in _blocks(file, naming).get(function, ()):
        if first <= line <= last and start <= line <= end:
            names.extend(block)
    return tuple(names)


def phase_by_line(frames: Iterable[Frame]) -> str:
    """The phase of a stack (outermost first) whose Python frames have full paths and lines.

    A frame's name may be qualified ("A.train", "f.<locals>.g"); its last part is the function.
    Comprehensions and lambdas contain no blocks; their caller's line counts.
    """
    return "/".join(_named(frames, _phase))


def recorded_phase(phase: str, recorded: Collection[str]) -> str:
    """The phase, read off source lines, as the program recorded it: blocks of another library may
    look the same. What was not recorded belongs to the phase around it, "" where there is none."""
    names = {name for path in recorded for name in path.split("/")}
    phase = "/".join(name for name in phase.split("/") if name in names)
    return nearest(phase, recorded) or ""


def part_by_line(frames: Sequence[Frame]) -> str:
    """The part of torch's work of a stack; "" where gradients are recorded, or may be."""
    for frame in frames:
        if frame.name.endswith("_engine_run_backward"):
            return BACKWARD
        if _OPTIMIZING.search(frame.module):
            return OPTIMIZER
    modes = _named(frames, _grad_mode)
    if modes:
        return NO_GRAD if modes[-1] == NO_GRAD else ""
    return NO_GRAD if any(frame.name.endswith("decorate_context") for frame in frames) else ""


def _named(frames: Iterable[Frame], naming: Naming) -> list[str]:
    names: list[str] = []
    for frame in frames:
        file = frame.module.rpartition("/")[2]
        if frame.line is not None and (file.endswith(".py") or "." not in file):  # a script's name
            function = frame.name.rsplit(".", 1)[-1]
            names.extend(_names_at(frame.module, function, frame.line, naming))
    return names


def phases_by_clock(
    log: SpanLog, native_id: int, times_ns: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    """The innermost span of one thread that was open at each time.

    Args:
        log: the spans of the program.
        native_id: the kernel's id of the thread.
        times_ns: times of the monotonic clock, int64, shape (n,), in any order.

    Returns:
        A list of phases and, for each time, an index into it, int64, shape (n,). The phase "" is
        the time outside all spans.
    """
    phases = ["", *log.paths]
    threads = [thread.data for thread in log.threads if thread.native_id == native_id]
    words = [np.frombuffer(data, np.int64).reshape(-1, 3) for data in threads if len(data)]
    if not words:
        return phases, np.zeros(len(times_ns), np.int64)
    path, start, end = np.concatenate(words).T
    path, start, end = (column[start < end] for column in (path, start, end))
    number = {name: index for index, name in enumerate(phases)}
    outer = np.array([number.get(name.rpartition("/")[0], 0) for name in phases])
    # Where a span begins it becomes the phase; where it ends, the span around it does. At equal
    # times ends come first. Spans are logged inner first, so the reverse puts outer begins first.
    times = np.concatenate([end, start[::-1]])
    becomes = np.concatenate([outer[path + 1], (path + 1)[::-1]])
    order = np.argsort(times, kind="stable")
    times, becomes = times[order], np.concatenate([[0], becomes[order]])
    return phases, becomes[np.searchsorted(times, times_ns, side="right")]
