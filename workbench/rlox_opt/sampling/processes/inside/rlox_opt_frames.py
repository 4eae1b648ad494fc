"""Notes which lines of Python all threads are at, some fifty times a second.

A sampler from outside knows no names of Python before 3.12, and loses the stack where native code
has no unwind information. What a thread's Python was at then, by the same clock, tells whose call
it was in. The recorder's thread looks; it waits for the interpreter's lock as any thread does, so a
thread is seen where it lets the lock go: inside a call that has released it, else at the next line
after. Each look is therefore noted with the time at which it was wanted and that at which it was
had.

Lines are the nodes of a tree, `{"name": [source, index, "file\\nline\\nfunction", "frame",
parent]}`: the parent's index in its decimal digits, "" of an outermost one. Looks are
`{"frames": [source, thread, data]}`: index, wanted, had; a thread that stays at one line has one
entry for all of it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

RATE = 67  # Hz, which does not beat with the watch's fifty
_DEPTH = 200  # lines of a stack that are looked at, from the innermost on
_NODES = 20_000  # lines that are told apart; a program that makes code anew all the time has more
_IMPORT = "_find_and_load"
# Lines that are not told: of imports all but one, and of the recorder.
_OURS = ("<frozen importlib", os.path.dirname(__file__))  # noqa: PTH120  # pathlib is slow
_SHARE = 0.01  # of the time that looking may take


class Frames:
    """Looks at the threads, when the recorder's thread calls."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.source = recorder.source("frames", what="frames")
        self.nodes: dict[tuple[int, Any, int], int] = {}
        self.lines: dict[tuple[Any, int], int] = {}
        self._begin()
        recorder.polled.append(self.settle)

    def _begin(self) -> None:
        """In a new process, such as a fork, whose threads are others."""
        self.key, self.pid = self.recorder.key, os.getpid()
        self.period = round(1e9 / RATE)
        self.due = time.monotonic_ns() + self.period
        self.at: dict[int, list[Any]] = {}  # by ident: the thread, its track, index, wanted, had

    def wait_s(self) -> float:
        """Seconds until the next look."""
        return max(0.0, (self.due - time.monotonic_ns()) * 1e-9)

    def look(self) -> None:
        """Look, if it is time to."""
        had = time.monotonic_ns()
        if had < self.due:
            return
        if self.key != self.recorder.key:
            self._begin()
        wanted, spent = self.due, time.thread_time_ns()
        if self.recorder.wanted(had):
            own = threading.get_ident()
            for ident, frame in sys._current_frames().items():
                if ident != own:
                    self._note(ident, self._index(frame), wanted, had)
        spent = time.thread_time_ns() - spent
        self.due = max(wanted + self.period, had + round(spent / _SHARE))

    def _note(self, ident: int, index: int, wanted: int, had: int) -> None:
        if index < 0:
            return
        thread = threading._active.get(ident)  # type: ignore[attr-defined]
        native = getattr(thread, "native_id", None)
        if thread is threading.main_thread():  # after a fork it has that of the parent still
            native = self.pid
        if native is None:  # made by C, and never asked Python who it is
            return
        known = self.at.get(ident)
        if known is None or known[0] is not thread:
            name = str(getattr(thread, "name", ""))
            known = [thread, self.source.open_thread(name, native), index, wanted, had]
            self.at[ident] = known
        elif known[2] == index:
            known[4] = had
        else:
            if known[3]:
                known[1].data.extend(known[2:])
            known[2:] = index, wanted, had

    def settle(self) -> list[Any]:
        """Before the recorder takes what was noted: what is not over is noted up to now."""
        if self.key == self.recorder.key:
            living = sys._current_frames()
            for ident, known in list(self.at.items()):
                if known[3]:
                    known[1].data.extend(known[2:])
                    known[2:] = -1, 0, 0
                if ident not in living:
                    del self.at[ident]
        return []

    def _index(self, frame: Any) -> int:
        """The node of a frame."""
        stack: list[tuple[Any, int, Any]] = []
        while frame is not None and len(stack) < _DEPTH:
            code = frame.f_code
            # Of an import that loads others there are five lines a module, and one says it.
            file = code.co_filename
            if not file.startswith(_OURS) or code.co_name == _IMPORT:
                stack.append((code, frame.f_lasti, frame))
            frame = frame.f_back
        node = -1
        for code, lasti, frame in reversed(stack):
            line = self.lines.get((code, lasti))
            if line is None:
                line = self.lines[code, lasti] = frame.f_lineno or _line_before(code, lasti)
            key = node, code, line
            known = self.nodes.get(key)
            if known is None:
                if len(self.nodes) >= _NODES:
                    break
                name = getattr(code, "co_qualname", code.co_name)
                path = f"{code.co_filename}\n{line}\n{name}"
                known = self.source.index(path, "frame", str(node) if node >= 0 else "")
                self.nodes[key] = known
            node = known
        return node


def _line_before(code: Any, lasti: int) -> int:
    """The line before an instruction that has none, such as a loop's jump back."""
    last = code.co_firstlineno
    for begin, _, line in code.co_lines() if hasattr(code, "co_lines") else ():
        if begin > lasti:
            break
        last = line or last
    return int(last)
