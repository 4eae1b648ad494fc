"""Which layer a change hit, as far as samples of the benchmark, or profiles of training before and
after it, tell."""

from __future__ import annotations

from rlox_opt.history.difference import Difference
from rlox_opt.views.site.layout import Html, colour, html, tag
from rlox_opt.views.site.model import History, Moved, Recording, cost
from rlox_opt.views.titles import layer_title


def differences(history: History, recording: Recording) -> dict[str, Difference]:
    """Each profile of a recording against that of the recording before it, by its name."""
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


def split(moved: Moved) -> Html:
    """The layers of a benchmark's change, and the function that changed most; nothing where its
    recording did not ask."""
    cause = moved.recording.entry.causes.get(moved.series.benchmark)
    if cause is None:
        return Html("")
    parts = sorted(cause["layers"].items(), key=lambda item: -item[1])
    whole = sum(part for _, part in parts if part > 0)
    bar = "".join(
        f'<i style="width:{100 * part / whole:.1f}%;{colour(layer)}"></i>'
        for layer, part in parts
        if part > 0
    )
    told = ", ".join(f"{layer_title(layer)} {100 * part:.0f} %" for layer, part in parts)
    told = told.replace("-", "−")
    function = cause.get("function")
    most = Html(f"; most of it in {tag('code', function)}") if function else ""
    return Html(f'<span class="split">{bar}</span> Of the change, {html(told)}{most}.')


def layers_in_words(history: History, moved: Moved) -> str:
    """The layers that changed most in training at a level change; "" where no profile tells."""
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


def points(change: float) -> str:
    """A difference of shares: "+2.1 points"."""
    return f"{100 * change:+.1f} points".replace("-", "−")
