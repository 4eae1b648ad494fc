"""The difference of two profiles of training: layers, functions, and the differential flamegraph.

Shares of two profiles can only be compared as parts of a step's time. So if both runs were compared
with the same control, shares are multiplied by the step's time relative to the control's. Otherwise
they stay shares, in which a part that grows makes the others smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlox_opt.history.store import Profile

SMALLEST = 0.001  # of the larger whole: smaller frames are counted for the frame around them
Z99 = 2.5758  # half of a 99 % interval, in standard errors


@dataclass(frozen=True)
class Part:
    """A layer or function: its time before and after, and half the 99 % interval of the difference,
    from the numbers of samples alone."""

    name: str
    before: float
    after: float
    error: float

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def beyond_noise(self) -> bool:
        return abs(self.change) > self.error


@dataclass(frozen=True)
class Difference:
    """Two profiles. `costs` are the times of a step, (1, 1) if they are not known."""

    before: Profile
    after: Profile
    costs: tuple[float, float] = (1.0, 1.0)
    of: str = "training"

    def layers(self) -> list[Part]:
        """The layers, the largest first."""
        parts = self.parts(self.before.layers, self.after.layers)
        return sorted(parts, key=lambda part: -max(part.before, part.after))

    def functions(self, most: int = 12) -> list[Part]:
        """The functions that changed most, if their change exceeds the noise of sampling.

        A function that only one side lists may have been cut off the other's list; it counts as 0
        there."""
        parts = self.parts(self.before.functions, self.after.functions)
        told = [part for part in parts if part.beyond_noise]
        return sorted(told, key=lambda part: -abs(part.change))[:most]

    def parts(self, before: Mapping[str, float], after: Mapping[str, float]) -> Iterable[Part]:
        """The shares of all names in either profile, side by side."""
        for name in dict.fromkeys([*before, *after]):
            b, a = before.get(name, 0.0), after.get(name, 0.0)
            variance = sum(
                (cost**2) * share * (1 - share) / max(1, profile.samples)
                for cost, share, profile in zip(
                    self.costs, (b, a), (self.before, self.after), strict=True
                )
            )
            b, a = b * self.costs[0], a * self.costs[1]
            yield Part(name, b, a, Z99 * math.sqrt(max(0.0, variance)))

    def tree(self) -> dict[str, Any] | None:
        """The stacks of both profiles as one tree, as a list in pre-order: `nodes` [depth, index
        into `names`, before, after]. None if one profile has no stacks."""
        if not self.before.folded or not self.after.folded:
            return None
        root = _Node()
        for side, folded in enumerate((self.before.folded, self.after.folded)):
            root.add(folded, side, self.costs[side])
        return _flat(root)


@dataclass
class _Node:
    takes: list[float] = field(default_factory=lambda: [0.0, 0.0])
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, folded: str, side: int, cost: float) -> None:
        """Add a profile's stacks, whose sum is `cost`."""
        stacks = [line.rpartition(" ")[::2] for line in folded.splitlines() if " " in line]
        unit = cost / max(1e-9, sum(float(count) for _, count in stacks))
        for stack, count in stacks:
            takes = float(count) * unit
            self.takes[side] += takes
            node = self
            for frame in stack.split(";"):
                node = node.children.setdefault(frame, _Node())
                node.takes[side] += takes


def _flat(root: _Node) -> dict[str, Any]:
    names: dict[str, int] = {}
    nodes: list[list[float]] = []
    least = SMALLEST * max(root.takes)
    waiting = [("training", 0, root)]
    while waiting:
        name, depth, node = waiting.pop()
        before, after = node.takes
        nodes.append([depth, names.setdefault(name, len(names)), round(before, 5), round(after, 5)])
        thick = [(n, child) for n, child in node.children.items() if max(child.takes) >= least]
        thick.sort(key=lambda item: sum(item[1].takes))  # the last one, the largest, is taken first
        waiting += [(n, depth + 1, child) for n, child in thick]
    return {"names": [[name, "", 0] for name in names], "nodes": nodes}
