"""Types of arguments that several verbs take."""

from __future__ import annotations

import argparse
import math
import re

_LONGEST = 60  # of a pattern that is told


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        given = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        raise argparse.ArgumentTypeError(f"is {given}, no regular expression: {error}") from None


def positive(text: str) -> float:
    """A number over 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"is {text!r}, expected a number over 0")
    return value
