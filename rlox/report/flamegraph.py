"""Merges samples into the trees that the page's flamegraph draws.

A tree's outer frames are phases, then come the sample's own frames. Widths are seconds of the plain
run: samples say how a phase is spent, the program's own clock says how long the phase is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlox.profiling.samples import MAIN_THREAD, Frame, Sample, Samples

SMALLEST = 0.0004  # of the total: thinner nodes are left to their parent, which none would see
COMMON = 0.95  # of the time: outer frames of so many samples say how training was started
OUTSIDE = "outside all phases"

Key = tuple[str, str, bool]  # a node's name, its module, whether it is a phase


@dataclass
class _Node:
    key: Key
    seconds: float = 0.0
    layers: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    children: dict[Key, _Node] = field(default_factory=dict)

    def add(self, layer: str, seconds: float) -> None:
        self.seconds += seconds
        self.layers[layer] += seconds


def self_seconds(report: Mapping[str, Any]) -> dict[str, float]:
    """The plain run's seconds in each phase and none of its inner ones; outside all under ""."""
    own = {phase["name"]: phase["seconds"] for phase in report.get("phases") or ()}
    whole = dict(own)
    own[""] = max(report.get("train_s") or 0.0, sum(s for p, s in whole.items() if "/" not in p))
    for phase, seconds in whole.items():
        own[phase.rpartition("/")[0]] -= seconds
    return {phase: max(0.0, seconds) for phase, seconds in own.items()}


def tree(samples: Samples, own: Mapping[str, float]) -> dict[str, Any]:
    """One tool's tree of the training thread, flat: `nodes` in pre-order, [depth, index into
    `names`, index into `layers`, seconds, share of the node that is that layer]; `names` are
    [name, module, is phase].

    A node's layer is the one that most of its time belongs to. `own` is `self_seconds`; without
    any, samples keep the time that they stand for under the tool.
    """
    found = [s for s in samples.samples if s.thread == MAIN_THREAD and s.weight > 0]
    sampled: defaultdict[str, float] = defaultdict(float)
    for sample in found:
        sampled[sample.phase] += sample.weight
    trunk = _trunk(found)
    root = _Node(("training", "", True))
    for sample in found:
        seconds = sample.weight * (
            own[sample.phase] / sampled[sample.phase]
            if sample.phase in own
            else 0.0
            if own
            else 1.0
        )
        keys: list[Key] = [(part, "", True) for part in (sample.phase or OUTSIDE).split("/")]
        started = sample.frames[: len(trunk)] if _same(sample.frames, trunk) else ()
        keys += [(f.name, f.module, False) for f in sample.frames[len(started) :]]
        node = root
        node.add(sample.layer, seconds)
        for key in keys:
            node = node.children.setdefault(key, _Node(key))
            node.add(sample.layer, seconds)
    return _flatten(root)


def _trunk(found: Sequence[Sample]) -> list[str]:
    """Names of the outermost frames that nearly all stacks begin with: `<module>`, `main`, …"""
    trunk: list[str] = []
    total = sum(sample.weight for sample in found)
    while found:
        next_: defaultdict[str, float] = defaultdict(float)
        for sample in found:
            if len(sample.frames) > len(trunk):
                next_[sample.frames[len(trunk)].name] += sample.weight
        name = max(next_, key=lambda name: next_[name], default=None)
        if name is None or next_[name] < COMMON * total:
            break
        trunk.append(name)
        found = [sample for sample in found if _same(sample.frames, trunk)]
    return trunk


def _same(frames: Sequence[Frame], trunk: Sequence[str]) -> bool:
    return [frame.name for frame in frames[: len(trunk)]] == list(trunk)


def _flatten(root: _Node) -> dict[str, Any]:
    names: dict[Key, int] = {}
    layers: dict[str, int] = {}
    nodes: list[list[float]] = []
    # A stack and not recursion: stacks of samples can be deeper than Python's.
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
