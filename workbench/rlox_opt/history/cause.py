"""Which layer a change affected, and which function in it. This is computed from two profiles of
the same work, and from the ratio of their times.

Shares of time are not enough, since a part that grows makes all other shares smaller. So the shares
of the second profile are multiplied by the ratio of the times. What a layer then has more than
before is its part of the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlox_opt.history.store import Profile


@dataclass(frozen=True)
class Cause:
    """`ratio` is time after / time before. `layers` are the parts of the change, which sum to 1; a
    negative part is a layer that changed the other way. `layer` has the largest part. `function` is
    the one in it that changed most, by the part `function_share`; None if none could be named.
    """

    ratio: float
    layer: str
    layers: Mapping[str, float]
    function: str | None = None
    function_share: float | None = None


def cause(before: Profile, after: Profile, ratio: float) -> Cause:
    """Where the time went, or came from. Raises ValueError if the ratio is 1."""
    if ratio == 1 or ratio <= 0:
        raise ValueError(f"ratio: is {ratio}, expected a change of time")
    layers = parts(before.layers, after.layers, ratio)
    layer = max(layers, key=layers.__getitem__)
    of_layer = {
        name.partition(":")[2]: part
        for name, part in parts(before.functions, after.functions, ratio).items()
        if name.startswith(f"{layer}:")
    }
    function = max(of_layer, key=of_layer.__getitem__, default=None)
    share = None if function is None else round(of_layer[function], 4)
    rounded = {name: round(part, 4) for name, part in layers.items() if round(part, 4)}
    return Cause(ratio, layer, rounded, function, share)


def parts(
    before: Mapping[str, float], after: Mapping[str, float], ratio: float
) -> dict[str, float]:
    """What each one takes more than before, as a part of what all take more together."""
    return {
        name: (ratio * after.get(name, 0.0) - before.get(name, 0.0)) / (ratio - 1)
        for name in dict.fromkeys([*before, *after])
    }
