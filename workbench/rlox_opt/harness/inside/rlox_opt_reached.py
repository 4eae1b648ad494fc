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
    """The Python functions of `folder` that a call enters, in any thread: the file of each,
    relative to the folder, and its first line. Compiled code and other processes are not seen.
    Raises RuntimeError where other threads have begun already, and this Python, before 3.12, cannot
    look into them."""
    set_of_others = getattr(threading, "setprofile_all_threads", None)
    if set_of_others is None and threading.active_count() > 1:
        raise RuntimeError("threads that have begun cannot be looked into before Python 3.12")
    entered: set[CodeType] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.add(frame.f_code)

    set_of_new = set_of_others or threading.setprofile
    before = sys.getprofile()
    set_of_new(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        set_of_new(None)
        sys.setprofile(before)
    within = os.path.join(folder, "")  # noqa: PTH118
    places = ((os.path.realpath(code.co_filename), code.co_firstlineno) for code in entered)
    return sorted((file[len(within) :], line) for file, line in places if file.startswith(within))
