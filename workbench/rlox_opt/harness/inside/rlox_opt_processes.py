"""What sides share whose calls are processes of their own; by the standard library alone, as
`rlox_opt_side` has it."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from typing import Any

from rlox_opt_side import opened


def of_children() -> float:
    """Seconds of the processor that all processes took that this one has started and that have
    ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def serve(made: Callable[[], Any], told: Callable[[Any, Exception], str]) -> None:
    """Answer the commands on stdin, by what is `made`, until it ends; what it raises is answered
    as it is `told`."""
    commands, answers = opened()
    side = made()
    for line in commands:
        name, *arguments = json.loads(line)
        try:
            answer = getattr(side, name)(*arguments)
        except Exception as error:  # the program's own, or the file system's
            answer = {"error": told(side, error)}
        print(json.dumps(answer), file=answers, flush=True)
