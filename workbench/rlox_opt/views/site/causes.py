"""Which layer a change affected, from samples of the benchmark, or from profiles of training before
and after it."""

from __future__ import annotations

from typing import NamedTuple

from rlox_opt.history.difference import Difference
from rlox_opt.views.site.figures import points
from rlox_opt.views.site.model import EntryFile, History, Moved, cost
from rlox_opt.views.titles import layer_title


class Split(NamedTuple):
    """A change by layers: `bars` are (per cent, layer) of those that grew, `told` describes all of
    them, and `function` is the one that changed most."""

    bars: list[tuple[str, str]]
    told: str
    function: str | None


def differences(history: History, recording: EntryFile) -> dict[str, Difference]:
    """The differences between each profile of a recording and that of the recording before."""
    before = history.before(recording)
    if before is None:
        return {}
    found = {}
    old, new = before.entry, recording.entry
    for name in sorted(old.profiles.keys() & new.profiles.keys()):
        was, now = cost(old, name), cost(new, name)
        sides = old.profiles[name], new.profiles[name]
        if was and now and old.control == new.control:
            found[name] = Difference(*sides, (was, now), "the control's time a step")
        else:
            found[name] = Difference(*sides)
    return found


def split(moved: Moved) -> Split | None:
    """The layers of a benchmark's change; None if its recording did not look for them."""
    cause = moved.recording.entry.causes.get(moved.series.benchmark)
    if cause is None:
        return None
    parts = sorted(cause["layers"].items(), key=lambda item: -item[1])
    whole = sum(part for _, part in parts if part > 0)
    bars = [(f"{100 * part / whole:.1f}", layer) for layer, part in parts if part > 0]
    told = ", ".join(f"{layer_title(layer)} {100 * part:.0f} %" for layer, part in parts)
    return Split(bars, told.replace("-", "−"), cause.get("function"))


def layers_in_words(history: History, moved: Moved) -> str:
    """The layers of training that changed most at a level change; "" without profiles."""
    told = []
    for name, difference in differences(history, moved.recording).items():
        parts = sorted(difference.layers(), key=lambda part: -abs(part.change))
        words = [
            f"{layer_title(part.name)} {points(part.change)}"
            for part in parts[:2]
            if part.beyond_noise
        ]
        told.append(f"{name.upper()}: {', '.join(words) or 'no layer beyond the noise'}")
    return f"In training, {'; '.join(told)}." if told else ""
