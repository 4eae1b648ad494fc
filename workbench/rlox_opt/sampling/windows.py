"""How long each tool records: as long as the interval that the report is to show demands.

The first sampler of a profile ranks the layers. Nothing is known of their shares yet, so its window
suits the worst of them, a layer with half of the time: an interval of ±h takes (z / 2h)² samples.

A sampler that follows is a witness beside it, and need not be as precise. What the first one saw
tells how many samples the witness needs: intervals narrow with the root of their number. A phase
that is all Rust scatters little, so this is often far fewer than the worst case.

The samples that fix a window are not those whose interval it fixes. A tool that watched its own
interval and stopped once that was narrow would stop early where few samples agree by chance, and
its interval would hold less often than it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rlox_opt.sampling import perf, pyspy, scalene
from rlox_opt.sampling.attribution import LayerShare
from rlox_opt.stats import rate

_RATES = {"perf": perf.RATE, "py-spy": pyspy.RATE, "scalene": scalene.RATE}  # samples a second
# Half the width of the widest interval, as a part of the time. A sample of perf's costs little
# time to take; the other two take a hundred in a second, and would need three minutes.
_RANKING = {"perf": 0.007, "py-spy": 0.013, "scalene": 0.013}
_WITNESS = 0.02
# What none of a thousand samples shows has less than 0.3 % of the time, 95 times of 100.
_LEAST = 1_000
_TORCH_S = 60.0  # torch.profiler misses no call: it ends when it has recorded enough updates


class Window(NamedTuple):
    """`seconds` of recording, and the reason why they are as many."""

    seconds: float
    why: str


def planned(tool: str, asked: float | None, seen: Mapping[str, Mapping[str, Any]]) -> Window:
    """The window of a tool: of `asked` seconds, where that is not None.

    Args:
        tool: perf, py-spy, scalene or torch.profiler.
        asked: seconds, or None.
        seen: sections of the report by their tool, of samplers that are done, the preciser first.
    """
    if asked is not None:
        return Window(asked, "as long as asked for")
    if tool == "torch.profiler":
        return Window(_TORCH_S, "at most so long")
    if not seen:
        half = _RANKING[tool]
        return _lasting(tool, _worst(half), f"{_points(half)} for any shares")
    source, section = next(iter(seen.items()))
    taken = section["seconds"] * _RATES[source]
    needed = taken * (section["half_width"] / _WITNESS) ** 2
    if needed <= _LEAST:
        return _lasting(tool, _LEAST, f"{_LEAST:,} samples, the fewest of a witness")
    why = f"{_points(_WITNESS)} for the shares that {source} saw"
    return _lasting(tool, min(needed, _worst(_WITNESS)), why)


def longest(tool: str, asked: float | None) -> float:
    """Seconds that its window may take at most, for an estimate before anything is known."""
    return planned(tool, asked, {}).seconds


def half_width(layers: Iterable[LayerShare]) -> float:
    """How far the widest of their intervals reaches from its share."""
    return max(max(of.share - of.ci95[0], of.ci95[1] - of.share) for of in layers)


def _lasting(tool: str, samples: float, why: str) -> Window:
    return Window(math.ceil(samples / _RATES[tool]), why)


def _worst(half: float) -> float:
    """Samples that give an interval of ±`half` to a layer with half of the time."""
    return (rate.Z95 / (2 * half)) ** 2


def _points(half: float) -> str:
    return f"±{100 * half:g} points"
