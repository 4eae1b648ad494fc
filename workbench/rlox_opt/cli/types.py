"""Types of arguments that several verbs take, beside numbers."""

from __future__ import annotations

import argparse
import re

_LONGEST = 60  # of a pattern that is told


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        given = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        raise argparse.ArgumentTypeError(f"is {given}, no regular expression: {error}") from None
