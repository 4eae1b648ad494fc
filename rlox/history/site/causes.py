"""Which layer a change hit, as far as the profiles of the commit and of the one before it tell."""

from __future__ import annotations

from rlox.history.site.difference import Difference
from rlox.history.site.model import History, Moved, Recording, costs, profiles
from rlox.report.titles import layer_title


def differences(history: History, recording: Recording) -> dict[str, Difference]:
    """Each profile of a recording against that of the recording before it, by its name."""
    before = history.before(recording)
    if before is None:
        return {}
    found = {}
    old = profiles(before.entry)
    for name, profile in profiles(recording.entry).items():
        if name in old:
            known = costs((before.entry, name), (recording.entry, name))
            of = "the control's time a step" if known else "training"
            found[name] = Difference(old[name], profile, known or (1.0, 1.0), of)
    return found


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
