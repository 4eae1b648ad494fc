"""Numbers on the command line, as types of argparse."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """A whole number, `least` or more."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d[\d_]*", text) or not least <= int(text) < 2**31:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return parse
