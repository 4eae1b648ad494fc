"""Functions for the sides whose calls are processes of their own. This file needs the standard
library alone, as `rlox_opt_side` does."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from typing import Any

from rlox_opt_side import opened


def of_children() -> float:
    """Processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def serve(made: Callable[[], Any], told: Callable[[Any, Exception], str]) -> None:
    """Answer the commands on stdin until it ends, by methods of the object that `made` returns. An
    error is answered with the text that `told` makes of it."""
    commands, answers = opened()
    side = made()
    for line in commands:
        name, *arguments = json.loads(line)
        try:
            answer = getattr(side, name)(*arguments)
        except Exception as error:  # the program's own, or one of the file system
            answer = {"error": told(side, error)}
        print(json.dumps(answer), file=answers, flush=True)
