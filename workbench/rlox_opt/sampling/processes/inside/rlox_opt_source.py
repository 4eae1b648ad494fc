"""The sources of a process's record: the names of blocks, and the data that threads append."""

from __future__ import annotations

import threading
from typing import Any


class Appended:
    """The data that one thread appended to a source and that are not written yet. They are in a
    list, since an array takes four times as long to extend by three integers."""

    __slots__ = ("data", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.data: list[int] = []


class SpanSource:
    """One source: the names of its blocks, and the triples that its threads append.

    It has what a `Timing` needs of a log of spans: `paths`, and `open_thread(…).data.extend`.
    """

    def __init__(self, recorder: Any, name: str, what: str = "spans") -> None:
        self.recorder, self.name, self.what = recorder, name, what
        self.number = -1
        self.paths: list[str] = []
        self.kinds: dict[int, tuple[str, str, str]] = {}
        self.tracks: list[Appended] = []
        self.named = 0  # the number of paths that are in the file already
        self._numbers: dict[tuple[str, str, str, str], int] = {}
        self._local = threading.local()

    def open_thread(self, name: str, native_id: int) -> Appended:
        """A new track of one thread."""
        track = Appended(self.recorder.threads.number(native_id, name))
        self.tracks.append(track)
        return track

    def here(self) -> list[int]:
        """The calling thread's track, to be extended by (index, begin, end) in one call."""
        try:
            return self._local.track.data  # type: ignore[no-any-return]
        except AttributeError:
            name = threading.current_thread().name
            self._local.track = self.open_thread(name, threading.get_native_id())
            return self._local.track.data  # type: ignore[no-any-return]

    def index(self, path: str, kind: str = "phase", on: str = "", channel: str = "") -> int:
        """The number of a name, which is a new number for a new name."""
        name = (path, kind, on, channel)
        try:
            return self._numbers[name]
        except KeyError:
            with self.recorder.naming:
                if name not in self._numbers:
                    self.kinds[len(self.paths)] = name[1:]
                    self.paths.append(path)
                    self._numbers[name] = len(self.paths) - 1
                return self._numbers[name]

    def name_line(self, index: int) -> dict[str, Any]:
        """The line that says which name a number stands for."""
        kind = self.kinds.get(index, ("phase", "", ""))
        more = kind if kind != ("phase", "", "") else ()
        return {"name": [self.number, index, self.paths[index], *more]}

    def begin_child(self, forking: set[int]) -> None:
        """After a fork: only the forking thread, which had these numbers, goes on."""
        self.tracks = [track for track in self.tracks if track.thread in forking]
        for track in self.tracks:
            track.thread = 0
            del track.data[:]
