"""Merges samples into the trees that the page draws as flamegraphs.

A tree's outer frames are phases; inside them are the samples' own frames. Widths are seconds of the
plain run: the program's own clock says how long a phase is, and samples say what it consists of.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlox_opt.sampling.samples import MAIN_THREAD, OUTSIDE, Frame, Samples

SMALLEST = 0.0004  # of the total: thinner nodes are too thin to see, and count for their parents
WHOLE = 0.2  # of a phase's stacks: at least so many reach down to the start of training
FEW = 0.02  # of all samples: a phase with fewer does not show how training was started
CPYTHON = "CPython"
_INTERPRETER = re.compile(r"(lib)?python3[\w.]*$")

Stack = list[tuple[str, str]]  # names and modules
Key = tuple[str, str, bool]  # a node's name, its module, whether it is a phase


@dataclass
class _FlameNode:
    key: Key
    seconds: float = 0.0
    layers: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    children: dict[Key, _FlameNode] = field(default_factory=dict)

    def add(self, layer: str, seconds: float) -> None:
        self.seconds += seconds
        self.layers[layer] += seconds


def self_seconds(report: Mapping[str, Any]) -> dict[str, float]:
    """The plain run's seconds in each phase without its inner ones; outside all of them under
    ""."""
    own = {phase["name"]: phase["seconds"] for phase in report.get("phases") or ()}
    whole = dict(own)
    own[""] = max(report.get("train_s") or 0.0, sum(s for p, s in whole.items() if "/" not in p))
    for phase, seconds in whole.items():
        own[phase.rpartition("/")[0]] -= seconds
    return {phase: max(0.0, seconds) for phase, seconds in own.items()}


def tree(samples: Samples, own: Mapping[str, float], whole: str = "training") -> dict[str, Any]:
    """One tool's tree of the training thread as lists. `nodes` are in pre-order: [depth, index into
    `names`, index into `layers`, seconds, share of the node that is of that layer]. `names` are
    [name, module, is phase].

    A node's layer is the one with most of its time. `own` are `self_seconds`; without any, samples
    keep the seconds that they stand for under the tool. `whole` is the root's name.
    """
    ours = [s for s in samples.samples if s.thread == MAIN_THREAD and s.weight > 0]
    sampled: defaultdict[str, float] = defaultdict(float)
    for sample in ours:
        sampled[sample.phase] += sample.weight
    scale = {phase: own.get(phase, 0.0) / s if own else 1.0 for phase, s in sampled.items()}
    stacks = [_stack(sample.frames) for sample in ours]
    by_phase: defaultdict[str, list[Stack]] = defaultdict(list)
    for sample, stack in zip(ours, stacks, strict=True):
        by_phase[sample.phase].append(stack)
    trunk = _trunk(group for group in by_phase.values() if len(group) >= FEW * len(ours))
    root = _FlameNode((whole, "", True))
    for sample, stack in zip(ours, stacks, strict=True):
        seconds = sample.weight * scale[sample.phase]
        keys: list[Key] = [(part, "", True) for part in (sample.phase or OUTSIDE).split("/")]
        keys += [(*pair, False) for pair in stack[_common(stack, trunk) :]]
        node = root
        node.add(sample.layer, seconds)
        for key in keys:
            node = node.children.setdefault(key, _FlameNode(key))
            node.add(sample.layer, seconds)
    return _flatten(root)


def _trunk(by_phase: Iterable[Sequence[Stack]]) -> Stack:
    """The outermost frames that the stacks of all phases share (`<module>`, `main`, …), which show
    only how training was started. Stacks whose outermost frames the unwinder lost do not count."""
    phases = list(by_phase)
    trunk: Stack = []
    while len(phases) > 1:
        n = len(trunk)
        next_ = [
            Counter(s[n] for s in stacks if len(s) > n and s[:n] == trunk) for stacks in phases
        ]
        shared = set.intersection(
            *(
                {frame for frame, count in beginnings.items() if count >= WHOLE * len(stacks)}
                for beginnings, stacks in zip(next_, phases, strict=True)
            )
        )
        if len(shared) != 1:
            break
        trunk.append(shared.pop())
    return trunk


def _stack(frames: Sequence[Frame]) -> Stack:
    """Names and modules, outermost first. Neighbouring functions of the interpreter become one
    entry, except for the innermost frame: between Python functions they add nothing."""
    stack: Stack = []
    for frame in frames:
        pair = (CPYTHON, "") if _INTERPRETER.match(frame.module) else (frame.name, frame.module)
        if pair[0] != CPYTHON or not stack or stack[-1] != pair:
            stack.append(pair)
    if frames and stack[-1][0] == CPYTHON:
        stack.append((frames[-1].name, frames[-1].module))
    return stack


def _common(stack: Stack, trunk: Stack) -> int:
    """How many frames of the stack are trunk. If the unwinder skipped some of them, the trunk's
    last frame is looked for, unless that frame is the interpreter's, which any stack may have."""
    if stack[: len(trunk)] == trunk:
        return len(trunk)
    if trunk and trunk[-1][0] != CPYTHON and trunk[-1] in stack:
        return stack.index(trunk[-1]) + 1
    return 0


def _flatten(root: _FlameNode) -> dict[str, Any]:
    names: dict[Key, int] = {}
    layers: dict[str, int] = {}
    nodes: list[list[float]] = []
    # No recursion: stacks of samples can be deeper than Python's recursion limit.
    waiting = [(0, root)]
    while waiting:
        depth, node = waiting.pop()
        if node.seconds < SMALLEST * root.seconds or not node.seconds:
            continue
        layer, most = max(node.layers.items(), key=lambda item: item[1])
        nodes.append(
            [
                depth,
                names.setdefault(node.key, len(names)),
                layers.setdefault(layer, len(layers)),
                round(node.seconds, 6),
                round(most / node.seconds, 3),
            ]
        )
        waiting += [
            (depth + 1, child)
            for child in sorted(node.children.values(), key=lambda child: child.seconds)
        ]
    return {
        "names": [[name, module, int(phase)] for name, module, phase in names],
        "layers": list(layers),
        "nodes": nodes,
    }
