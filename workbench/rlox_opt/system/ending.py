"""The signals that end a program, and how they are kept from losing results."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def not_interrupted() -> Iterator[None]:
    """Ignore Ctrl-C and other ending signals in this block, so that they do not lose what was
    kept."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
