"""A profile as the history keeps it: shares, and stacks cut down to a size fit for a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.history.store import Profile
from rlox_opt.sampling.attribution import attribute, divide
from rlox_opt.sampling.flamegraph import tree
from rlox_opt.sampling.functions import Text, innermost, short
from rlox_opt.sampling.samples import OUTSIDE, Sample, Samples

FUNCTIONS = 60  # the largest are kept
FOLDED_BYTES = 30_000
_WHOLE = 1_000_000


def profile(samples: Samples, self_seconds: Mapping[str, float], text: Text) -> Profile:
    """The parts to keep of samples, and of each phase's seconds in the undisturbed run.

    `text` gives the sources of the build. Raises ValueError as `attribute` does.
    """

    def function(sample: Sample) -> str:
        ours = innermost(sample.frames, text)
        where = f"in {sample.phase}" if sample.phase else _leaf(sample)
        return f"{sample.layer}:{ours or where}"

    functions = divide(samples, self_seconds, function)
    whole = sum(max(0.0, seconds) for seconds in self_seconds.values())
    return Profile(
        samples=len(samples.samples),
        layers={of.name: round(of.share, 5) for of in attribute(samples, self_seconds)},
        phases={
            phase or OUTSIDE: round(max(0.0, seconds) / whole, 5)
            for phase, seconds in self_seconds.items()
        },
        functions={of.name: round(of.share, 5) for of in functions[:FUNCTIONS] if of.share},
        folded=folded(tree(samples, self_seconds)),
    )


def _leaf(sample: Sample) -> str:
    return short(sample.frames[-1].name) if sample.frames else "?"


def folded(of: Mapping[str, Any], most: int = FOLDED_BYTES) -> str:
    """The stacks of a `tree` as lines "frame;…;frame millionths of the whole", in at most so many
    bytes. Nodes that are too thin for that are counted for the node around them."""
    nodes, names = of["nodes"], [short(name) for name, *_ in of["names"]]
    total = nodes[0][3] if nodes else 0.0
    least = 0.0
    while True:
        lines = _lines(nodes, names, total, least)
        text = "".join(lines)
        if len(text.encode()) <= most:
            return text
        least = 2 * least or 0.0005


def _lines(nodes: list[Any], names: list[str], total: float, least: float) -> list[str]:
    """A line for each node that has time of its own and at least the share `least` of the total."""
    own: list[tuple[tuple[str, ...], float]] = []
    at: list[int] = []  # the open nodes, as indices into `own`, outermost first
    for depth, name, _, seconds, _ in nodes:
        if seconds < least * total:
            continue
        del at[int(depth) :]
        if len(at) < depth:  # inside a node that was left out
            continue
        path: tuple[str, ...] = ()
        if at:
            path, left = own[at[-1]]
            own[at[-1]] = path, left - seconds
        at.append(len(own))
        own.append(((*path, names[int(name)].replace(";", ",")), seconds))
    scale = _WHOLE / total if total else 0.0
    counts: dict[str, int] = {}
    for path, seconds in own:
        if (count := round(seconds * scale)) > 0:
            stack = ";".join(path[1:] or path)  # the root, "training", is left out
            counts[stack] = counts.get(stack, 0) + count
    return [f"{stack} {count}\n" for stack, count in counts.items()]
