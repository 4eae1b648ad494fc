"""Numbers on the command line, as types for argparse. Errors give the value and the remedy."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

_MOST = 2**31 - 1


def whole(least: int, most: int = _MOST) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""
    to = "on" if most == _MOST else f"to {most}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9][0-9_]{0,20}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"is {text!r}, expected a whole number from {least} {to}"
            )
        return int(text)

    return parse


def real(least: float, most: float, what: str = "a number") -> Callable[[str], float]:
    """A number from `least` to `most`."""

    def parse(text: str) -> float:
        value = _float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"is {text!r}, expected {what} from {least:g} to {most:g}"
            )
        return value

    return parse


def positive(text: str) -> float:
    """A number over 0."""
    value = _float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"is {text!r}, expected a number over 0")
    return value


def _float(text: str) -> float:
    """The number in a text; nan if there is none, which lies in no range."""
    try:
        return float(text)
    except ValueError:
        return math.nan
