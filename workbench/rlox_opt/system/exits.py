"""The exit codes of every verb, in one place, and how `--help` tells them."""

from __future__ import annotations

GOOD = 0
DIFFERENCE = 1  # a regression, a difference, a failed test: what was asked about is so
CANNOT_TELL = 2  # undecided, or asked wrongly
OWN_ERROR = 3  # a fault of ours, or nothing could be written
INTERRUPTED = 130  # by Ctrl-C; what was finished is kept

MEANINGS = {
    GOOD: "good",
    DIFFERENCE: "a regression or a difference",
    CANNOT_TELL: "cannot tell, or asked wrongly",
    OWN_ERROR: "an error of rlox-opt itself, or nothing could be written",
    INTERRUPTED: "interrupted",
}


def told(good: str = "", difference: str = "", cannot_tell: str = "", interrupted: str = "") -> str:
    """The codes as the end of a verb's `--help`: what each means everywhere, and behind it what it
    means of this verb. Of a verb without a `difference`, 1 is left out."""
    own = {GOOD: good, DIFFERENCE: difference, CANNOT_TELL: cannot_tell, INTERRUPTED: interrupted}
    lines = [
        f"  {code:<5}{meaning}" + (f": {own[code]}" if own.get(code) else "")
        for code, meaning in MEANINGS.items()
        if code != DIFFERENCE or difference
    ]
    return "\n".join(["\nexit codes:", *lines])
