"""Types of arguments that several verbs take, beside numbers."""

from __future__ import annotations

import argparse
import re
from typing import Any

_LONGEST = 60  # of a pattern that is told


class Once(argparse.Action):
    """Keeps the value of an option that would be misunderstood if it were given twice: argparse
    takes the last one and says nothing."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given: frozenset[str] = getattr(namespace, "given_once", frozenset())
        if self.dest in given:
            joined = ", which may join several by |" if self.type is pattern else ""
            raise argparse.ArgumentError(self, f"is given twice; give one {self.metavar}{joined}")
        namespace.given_once = given | {self.dest}
        setattr(namespace, self.dest, values)


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression. A benchmark's whole name is found, too, although the parentheses or
    brackets of its parameters mean something else there."""
    try:
        found = re.compile(text)
        a_name = text.endswith((")", "]")) and "\\" not in text and not found.search(text)
        return re.compile(f"(?:{text}|{re.escape(text)})") if a_name else found
    except (re.error, RecursionError, OverflowError) as error:
        given = repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} and so on")
        raise argparse.ArgumentTypeError(f"is {given}, no regular expression: {error}") from None
