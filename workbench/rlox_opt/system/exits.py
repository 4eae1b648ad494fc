"""The exit codes of every verb, in one place, and their text for `--help`."""

from __future__ import annotations

GOOD = 0
DIFFERENCE = 1  # a regression, a difference, a failed test
CANNOT_TELL = 2  # undecided, or a wrong argument
OWN_ERROR = 3  # a fault of this program, or a file that could not be written
INTERRUPTED = 130  # by Ctrl-C; what was finished is kept

MEANINGS = {
    GOOD: "good",
    DIFFERENCE: "a regression or a difference",
    CANNOT_TELL: "cannot tell, or asked wrongly",
    OWN_ERROR: "an error of rlox-opt itself, or nothing could be written",
    INTERRUPTED: "interrupted",
}


def told(good: str = "", difference: str = "", cannot_tell: str = "", interrupted: str = "") -> str:
    """The codes for the end of a verb's `--help`: the general meaning of each, followed by its
    meaning for this verb. Without a `difference`, code 1 is left out."""
    own = {GOOD: good, DIFFERENCE: difference, CANNOT_TELL: cannot_tell, INTERRUPTED: interrupted}
    lines = [
        f"  {code:<5}{meaning}" + (f": {own[code]}" if own.get(code) else "")
        for code, meaning in MEANINGS.items()
        if code != DIFFERENCE or difference
    ]
    return "\n".join(["\nexit codes:", *lines])
