"""Which functions of a build a call enters. This file needs the standard library alone, as
`rlox_opt_side` does."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def reached(call: Callable[[], object], folder: str) -> list[tuple[str, int]]:
    """The Python functions of `folder` that a call enters, in any thread that it starts: the file
    of each, relative to the folder, and its first line. Compiled code and other processes are not
    seen."""
    entered: set[CodeType] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.add(frame.f_code)

    before = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    within = os.path.join(folder, "")  # noqa: PTH118
    places = ((os.path.realpath(code.co_filename), code.co_firstlineno) for code in entered)
    return sorted((file[len(within) :], line) for file, line in places if file.startswith(within))
