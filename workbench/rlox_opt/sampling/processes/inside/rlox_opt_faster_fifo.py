"""Records the waits at Sample Factory's queues, those of `faster_fifo`, and what is put into them.

The queues' methods end in `put_many` and `get_many`, which also turn messages into bytes and back.
That is work. So a put begins when all its messages are bytes, and a get ends when the first message
is to be read. Each message of a call is recorded; all but one take no time in the record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Any

from rlox_opt_hooks import on_import, replace


class FasterFifo:
    """Replaces the methods that wait, and records them as source "waits"."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.source = recorder.source("waits")
        self._here = threading.local()  # `begin` of the get that the thread is in, else None

    def install(self) -> None:
        """Replace them when the program imports the module."""
        on_import("faster_fifo", self._queues)

    def _queues(self, module: Any) -> None:
        replace(module.Queue, "__init__", self._make_init)
        replace(module.Queue, "put_many", self._make_put)
        replace(module.Queue, "get_many", self._make_get)
        replace(module.Queue, "parse_messages", self._make_parse)

    def _make_init(self, original: Any) -> Callable[..., None]:
        def begin(queue: Any, *args: Any, **kwargs: Any) -> None:
            # The name is pickled with the queue, so all processes have the same one.
            queue.__dict__["_rlox_opt"] = f"queue {self.recorder.key} {next(self.recorder.made)}"
            original(queue, *args, **kwargs)

        return begin

    def _make_put(self, original: Any) -> Callable[..., Any]:
        def put_many(queue: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
            channel = queue.__dict__.get("_rlox_opt")
            if channel is None or not isinstance(xs, (list, tuple)):
                return original(queue, xs, *args, **kwargs)
            messages, begin = _Messages(xs), monotonic_ns()
            result = original(queue, messages, *args, **kwargs)
            # After an exception nothing was put. The other messages are recorded first, since a
            # message may be received before this call is over, but not before it was put.
            begin = messages.read_ns or begin
            index = self.source.index("queue: put", "send", "queue", channel)
            if messages:
                others = (index, begin, begin) * (len(messages) - 1)
                self.source.here().extend((*others, index, begin, monotonic_ns()))
            return result

        return put_many

    def _make_get(self, original: Any) -> Callable[..., Any]:
        here = self._here

        def get_many(queue: Any, *args: Any, **kwargs: Any) -> Any:
            channel = queue.__dict__.get("_rlox_opt")
            if channel is None or getattr(here, "begin", None) is not None:  # the call is nested
                return original(queue, *args, **kwargs)
            here.begin = monotonic_ns()
            try:
                return original(queue, *args, **kwargs)
            except Exception:
                if here.begin is not None:  # the queue was empty
                    index = self.source.index("queue: empty", "poll", "queue", channel)
                    self.source.here().extend((index, here.begin, monotonic_ns()))
                raise
            finally:
                here.begin = None

        return get_many

    def _make_parse(self, original: Any) -> Callable[..., Any]:
        here = self._here

        def parse_messages(queue: Any, number: int, *args: Any, **kwargs: Any) -> Any:
            begin, here.begin = getattr(here, "begin", None), None
            if begin is not None:
                now = monotonic_ns()
                index = self.source.index(
                    "queue: get", "wait", "queue", queue.__dict__["_rlox_opt"]
                )
                others = (index, now, now) * (number - 1)
                self.source.here().extend((index, begin, now, *others))
            return original(queue, number, *args, **kwargs)

        return parse_messages


class _Messages(list[Any]):
    """A list that records when it was first read to its end."""

    read_ns = 0

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        self.read_ns = self.read_ns or monotonic_ns()
