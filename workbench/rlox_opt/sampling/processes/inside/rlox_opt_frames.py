"""Records the lines of Python that all threads are at, some fifty times a second.

A sampler from outside sees no Python functions before Python 3.12, and loses the stack where native
code has no unwind information. The thread's Python line at that time, by the same clock, shows
which call it was in. The recorder's thread takes these looks, and it waits for the interpreter's
lock as any thread does. So it sees a thread where that thread releases the lock: inside a call that
has released it, or at the next line after the call. Each look is therefore recorded with two times:
when it was wanted, and when it was had.

Lines are the nodes of a tree, `{"name": [source, index, "file\\nline\\nfunction", "frame",
parent]}`; parent is the index of the calling line in decimal digits, "" for an outermost line.
Looks are `{"frames": [source, thread, data]}` with index, wanted, had; a thread that stays at one
line has one entry for the whole time.
"""

from __future__ import annotations

import dis
import os
import sys
import threading
import time
from typing import Any

RATE = 67  # Hz; does not fall in step with the watch's fifty
_DEPTH = 200  # lines of a stack that are read, from the innermost on
_NODES = 20_000  # different lines that are recorded; a program may make new code all the time
_IMPORT = "_find_and_load"
# Lines that are not recorded: of an import all but one, and the recorder's own.
_OURS = ("<frozen importlib", os.path.dirname(__file__))  # noqa: PTH120  # pathlib is slow
_SHARE = 0.01  # of the time that looking may take


class Frames:
    """Takes the looks at the threads when the recorder's thread calls it."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.source = recorder.source("frames", what="frames")
        self.nodes: dict[tuple[int, Any, int], int] = {}
        self.lines: dict[tuple[Any, int], int] = {}
        self._begin()
        recorder.polled.append(self.settle)

    def _begin(self) -> None:
        """Begin in a new process, such as a fork, which has other threads."""
        self.key, self.pid = self.recorder.key, os.getpid()
        self.period = round(1e9 / RATE)
        self.due = time.monotonic_ns() + self.period
        self.at: dict[int, list[Any]] = {}  # by ident: the thread, its track, index, wanted, had

    def wait_s(self) -> float:
        """Seconds until the next look."""
        return max(0.0, (self.due - time.monotonic_ns()) * 1e-9)

    def look(self) -> None:
        """Take a look, if it is time."""
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
        if thread is threading.main_thread():  # after a fork it still has its parent's id
            native = self.pid
        if native is None:  # a thread of C code that never asked Python for its identity
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
        """Record lines that threads are still at up to now, before the recorder takes the data."""
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
        """The index of a frame's line."""
        stack: list[tuple[Any, int, Any]] = []
        while frame is not None and len(stack) < _DEPTH:
            code = frame.f_code
            # A nested import has five frames for each module, of which one is enough.
            file = code.co_filename
            if not file.startswith(_OURS) or code.co_name == _IMPORT:
                stack.append((code, frame.f_lasti, frame))
            frame = frame.f_back
        node = -1
        for code, lasti, frame in reversed(stack):
            line = self.lines.get((code, lasti))
            if line is None:
                line = self.lines[code, lasti] = _line(code, lasti, frame.f_lineno)
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


def _line(code: Any, lasti: int, line: int | None) -> int:
    """The line of an instruction. Python that makes no call releases the lock where a loop jumps
    back. That jump has the line of the loop's last statement, or none, and stands for the whole
    loop: its line is the first one of the loop. Any other without a line has the one before it."""
    told = [*code.co_lines()] if hasattr(code, "co_lines") else []
    begin = _loop(code, lasti) if told else None
    if line is not None and begin is None:
        return line
    since = begin or 0
    lines = [of for first, end, of in told if first <= lasti and end > since and of is not None]
    lines = lines or [line or code.co_firstlineno]
    return int(lines[-1] if begin is None else min(lines))


def _loop(code: Any, lasti: int) -> int | None:
    """Where the loop begins of which this instruction is the jump back; None for any other."""
    if not dis.opname[code.co_code[lasti]].startswith(("JUMP_BACKWARD", "JUMP_ABSOLUTE")):
        return None
    for instruction in dis.get_instructions(code):
        if instruction.offset == lasti:
            return int(instruction.argval) if instruction.argval <= lasti else None
    return None
