"""Records what this process does, for a run of several processes (`rlox_opt.sampling.processes`).

It lies in a folder of its own, which `PYTHONPATH` names to every Python process of the run. The
program's environment may have no rlox-opt and an older Python, so this file needs the standard
library alone. `sitecustomize` beside it calls `start`. `format` describes the files.

For a span the program appends three integers. Four times a second a thread takes what was appended
and writes it. That thread ends before a fork and begins anew afterwards: a lock that it held would
stay locked in the child for ever.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import rlox_opt_faster_fifo
import rlox_opt_frames
import rlox_opt_hooks
import rlox_opt_identity
import rlox_opt_libraries
import rlox_opt_locks
import rlox_opt_torch
import rlox_opt_waits
from rlox_opt_gauges import Gauges
from rlox_opt_identity import PARENT
from rlox_opt_segments import (
    EXEC,
    FOLDER,
    GATE,
    OPTIONS,
    RECORDER,
    Segments,
    allow_ptrace,
    encode,
    read_clock,
    time_namespace,
)
from rlox_opt_source import Appended, SpanSource
from rlox_opt_threads import Threads, start_deaf

_FLUSH_S = 0.25
_HASTY_FLUSHES = 5  # the first ones, each after half the time of the next
_WRITING_S = 60.0  # the time to write torch's operators, of which there may be many
_SLOW_FLUSHES = 20  # flushes between two readings of the clock and of the totals


class Recorder:
    """The record of this process: its sources, its threads, its counters, its files."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self.folder, self.options = folder, options  # `launch.Options`, and the run's start_ns
        self.sources: list[SpanSource] = []
        self.timings: list[Any] = []  # each source's Timing, or None
        self.polled: list[Callable[[], list[Any]]] = []  # called at every flush; return entries
        self.pairs: list[list[str]] = []  # the two ends of each connection that was made here
        self._forking: dict[int, int] = {}  # threads that have forked, to their native ids
        self.made = count()  # numbers objects without a name: an object's id may be used again
        self._complained = False
        self.frames: Any = None  # records Python's lines, if the user wants them
        self._begin("exec", os.environ.get(PARENT), rlox_opt_identity.of_program())
        self.flows = self.source("flows", what="flows")

    def _begin(self, start: str, parent_key: str | None, role: tuple[str, int | None, str]) -> None:
        now = time.monotonic_ns()
        self.lock = _thread.allocate_lock()
        self.key, self.role = f"{os.getpid()}-{now}", role
        self.gauges = Gauges()
        self.threads = Threads()
        self.naming = self.threads.lock
        self.threads.number(threading.get_native_id(), threading.current_thread().name)
        self._told_threads = self._told_sources = self._told_pairs = self._flushes = 0
        self._flushed = now
        self._wake: Any = None
        self.header = {
            "key": self.key,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "parent_key": parent_key,
            "start": start,
            "argv": rlox_opt_identity.argv(),
            "time_namespace": time_namespace(),
        }
        os.environ[PARENT] = self.key
        self.ending = False
        self.files: Segments | None = Segments(
            f"{self.folder}/{self.key}",
            self.options["segment_bytes"],
            self.options["segments"],
            self._preamble,
        )
        self._start_thread()

    def _preamble(self, number: int) -> list[Any]:
        role, index, name = self.role
        header = {**self.header, "role": role, "index": index, "name": name, "segment": number}
        self._told_threads = self._told_sources = self._told_pairs = 0
        for source in self.sources:
            source.named = 0
        return [{"process": header}, {"clock": read_clock()}, *self._news()]

    def source(self, name: str, timing: Any = None, what: str = "spans") -> SpanSource:
        """The source of that name. Each Timing has one of its own."""
        with self.naming:
            if timing is None:
                for source in self.sources:
                    if source.name == name and source.what == what:
                        return source
            source = SpanSource(self, name, what)
            source.number = len(self.sources)
            self.sources.append(source)
            # The Timing is kept: its sums are written to the end, and programs make few of them.
            self.timings.append(timing)
            return source

    def adopt(self, timing: Any) -> None:
        """Record every block of a `Timing`."""
        timing.spans = self.source(timing.name, timing)
        timing.enabled = True

    def flow(self, name: str, number: int) -> None:
        """A point of a flow, here and now. A `number` that is no number is ignored."""
        try:
            number = int(number) & (1 << 63) - 1  # a hash, for example, may have more bits
        except (TypeError, ValueError, OverflowError):
            return
        self.flows.here().extend((self.flows.index(name, "flow"), time.monotonic_ns(), number))

    def gauge(self, name: str, read: Callable[[], float], rate: bool = False) -> None:
        """Record `read()` four times a second; with `rate`, its growth per second."""
        self.gauges.add(name, read, rate)

    def flush(self, how: str | None = None) -> None:
        """Write what was appended; with `how`, the end as well."""
        # With a timeout: a signal handler that exits may have interrupted the lock's own holder.
        if not self.lock.acquire(timeout=2.0):
            return
        try:
            self._flush(how)
        except Exception as error:  # of whatever kind: this thread, or the program, goes on
            self._flushed = time.monotonic_ns()
            if not self._complained:
                self._complained = True
                _say(f"something of process {os.getpid()} is not recorded: {error!r}")
        finally:
            self.lock.release()

    def _flush(self, how: str | None) -> None:
        role = rlox_opt_identity.of_multiprocessing()
        entries = self._take(bool(how))
        if role is not None and role != self.role:
            self.role = role
            entries.append({"role": list(role)})
        if how:
            entries.append({"end": [time.monotonic_ns(), how]})
        self._write(entries)
        if how and how != EXEC and self.files is not None:  # an exec may fail
            self.files.close()
            self.files = None

    def stop(self, how: str) -> None:
        """Write the end; nothing is recorded afterwards."""
        if self.files is not None:
            self._stop_thread(_WRITING_S)
            self.ending = True
            self.flush(how)

    def _write(self, entries: list[Any]) -> None:
        if self.files is None:
            return
        try:
            self.files.write(entries)
        except OSError as error:
            _say(f"recording of process {os.getpid()} ends: {error}")
            self.files = None

    def _take(self, last: bool) -> list[Any]:
        now = time.monotonic_ns()
        wanted = self.wanted(self._flushed)
        slow = last or (self._flushes + 1) % _SLOW_FLUSHES == 0
        # Found before anything is taken: threads that have ended by now append nothing more.
        over = self._over() if slow else None
        entries: list[Any] = []
        for poll in list(self.polled):
            try:
                entries += poll()
            except Exception as error:  # a library differs from what is expected: go on without it
                self.polled.remove(poll)
                _say(f"{poll.__name__} of process {os.getpid()}: {error!r}")
        for source in list(self.sources):
            for track in list(source.tracks):
                words = len(track.data) // 3 * 3  # an earlier Timing appends one by one
                if words:
                    data = track.data[:words]
                    del track.data[:words]
                    entries.append({source.what: [source.number, track.thread, encode(data)]})
        entries += self.gauges.take(now)
        if wanted:
            entries.append({"recorded": [self._flushed, now]})
        else:  # what the process runs with is seldom told, so it is kept at all times
            entries = [entry for entry in entries if "loaded" in entry]
        self._flushed, self._flushes = now, self._flushes + 1
        if slow:
            entries += [{"clock": read_clock()}, {"totals": self._totals()}]
        entries = self._news() + entries
        if over is not None:
            ended, tracks = over
            self.threads.forget(ended)
            for source, track in tracks:
                source.tracks.remove(track)  # in place, since threads append to the list meanwhile
        return entries

    def _over(self) -> tuple[set[int], list[tuple[SpanSource, Appended]]]:
        """The numbers of the threads that have ended, and their tracks."""
        threads = self.threads.items()
        tracks = [(source, track) for source in list(self.sources) for track in list(source.tracks)]
        ended = self.threads.ended(threads)  # a thread that began later is in neither list
        return ended, [(source, track) for source, track in tracks if track.thread in ended]

    def wanted(self, now: int) -> bool:
        """Whether spans that close from `now` on are kept."""
        elapsed = (now - self.options["start_ns"]) / 1e9 - self.options["from_s"]
        length, every = self.options["for_s"], self.options["every"]
        inside = elapsed >= 0 and (length is None or elapsed < length)
        return bool(inside and int(elapsed) % every == 0)

    def _news(self) -> list[Any]:
        """Entries for the threads, sources and names that this segment does not contain yet."""
        new: list[Any] = []
        # Other threads may add more meanwhile, which come with the next flush.
        threads, sources, pairs = self.threads.opened, len(self.sources), len(self.pairs)
        for number, thread in self.threads.items():
            if self._told_threads <= number < threads:
                new.append({"thread": [number, *thread]})
        for source in self.sources[self._told_sources : sources]:
            new.append({"source": [source.number, source.name]})
        new += [{"pair": pair} for pair in self.pairs[self._told_pairs : pairs]]
        self._told_threads, self._told_sources, self._told_pairs = threads, sources, pairs
        for source in self.sources:
            named = len(source.paths)
            new += [source.name_line(index) for index in range(source.named, named)]
            source.named = named
        return new

    def _totals(self) -> list[list[int]]:
        """The sums of threads that still run; those of ended threads are written already."""
        return [
            [source.number, thread, index, calls, ns]
            for source, timing in zip(self.sources, self.timings)  # noqa: B905  # Python 3.9
            if timing is not None
            for name, native_id, index, calls, ns in timing.totals()
            if (thread := self.threads.known(native_id, name)) is not None
        ]

    def _start_thread(self) -> None:
        if self._wake is None and self.files is not None:
            self._wake, self._done = _thread.allocate_lock(), _thread.allocate_lock()
            self._wake.acquire()
            self._done.acquire()
            start_deaf(self._loop, (self._wake, self._done))

    def _stop_thread(self, patience_s: float = 5.0) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake.release()
            # With a timeout: that thread may be importing what this thread imports.
            self._done.acquire(timeout=patience_s)

    def _loop(self, wake: Any, done: Any) -> None:
        self.threads.number(threading.get_native_id(), RECORDER)
        try:
            while not wake.acquire(timeout=self._patience_s()):
                if self.frames is not None:
                    self._look()
                if self._due_s() <= 0:
                    self.flush()
        finally:
            done.release()

    def _look(self) -> None:
        try:
            self.frames.look()
        except Exception as error:  # the interpreter differs from what is expected
            self.frames = None
            _say(f"Python's lines of process {os.getpid()} are not looked at: {error!r}")

    def _patience_s(self) -> float:
        """Seconds until there is something to do."""
        due = self._due_s()
        return max(0.0, due if self.frames is None else min(due, self.frames.wait_s()))

    def _due_s(self) -> float:
        """Seconds until the next flush. The first ones come soon, since a process may be killed
        early. They are counted from the last flush and not from the thread's begin, since a program
        that forks often begins this thread anew each time."""
        period = _FLUSH_S / (1 << max(0, _HASTY_FLUSHES - self._flushes))
        return self._flushed / 1e9 + period - time.monotonic()

    def before_fork(self) -> None:
        """Stop the recorder's thread before the process is copied."""
        self._forking[threading.get_ident()] = threading.get_native_id()
        self._stop_thread()

    def after_fork(self) -> None:
        """Go on in the parent."""
        self._start_thread()

    def in_child(self) -> None:
        """Begin a record of its own in the child of a fork."""
        files, self.files = self.files, None
        if files is not None:
            files.close()
            parent = self.role
            # The child's only thread keeps its identifier, but has another native id.
            native = self._forking[threading.get_ident()]
            threads = self.threads.items()
            forking = {n: name for n, (native_id, name) in threads if native_id == native}
            for source in self.sources:
                source.begin_child(set(forking))
            for timing in self.timings:
                if timing is not None:
                    timing.begin_child()
            self._begin("fork", self.key, (f"{parent[0]} fork", None, f"{parent[2]} fork"))
            for name in forking.values():  # a Timing may use an earlier name of the thread
                self.threads.rename(0, threading.get_native_id(), name)
            if self.options["ptrace"]:  # a fork does not inherit the permission
                allow_ptrace()


def _say(text: str) -> None:
    with contextlib.suppress(Exception):  # a daemon has no stderr
        sys.stderr.write(f"rlox-opt: {text}\n")


_active: Recorder | None = None


def active() -> Recorder | None:
    """The recorder of this process; None if nothing is recorded."""
    return _active


def start() -> None:
    """Record this process, if `RLOX_OPT_RECORD` names a folder."""
    global _active
    folder = os.environ.get(FOLDER)
    if not folder or _active is not None:
        return
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # keeps torch.profiler from writing to stderr
    gate = os.environ.pop(GATE, "")
    if gate:  # the run's first process waits until the sampler is ready
        with contextlib.suppress(OSError):  # a process before it, not Python, may have closed it
            os.read(int(gate), 1)
            os.close(int(gate))
    _active = recorder = Recorder(folder, json.loads(os.environ[OPTIONS]))
    sys.modules.setdefault("rlox_recorder", sys.modules[__name__])  # the name for older Timings
    os.register_at_fork(
        before=recorder.before_fork,
        after_in_parent=recorder.after_fork,
        after_in_child=recorder.in_child,
    )
    atexit.register(recorder.stop, "exit")
    leave = os._exit

    def exit_recorded(status: int) -> None:
        try:
            recorder.stop("exit")
        finally:  # in any case: the caller relies on the process to end
            leave(status)

    def make_exec(original: Callable[..., Any]) -> Callable[..., Any]:
        def execute(*args: Any, **kwargs: Any) -> Any:
            recorder.flush(EXEC)
            return original(*args, **kwargs)

        return execute

    for name in ("execv", "execve"):  # the other functions call these
        rlox_opt_hooks.replace(os, name, make_exec)
    os._exit = exit_recorded  # type: ignore[assignment]  # how multiprocessing's children end
    rlox_opt_waits.Waits(recorder).install()
    rlox_opt_faster_fifo.FasterFifo(recorder).install()
    rlox_opt_locks.Locks(recorder).install()
    rlox_opt_libraries.Libraries(recorder).install()
    rlox_opt_torch.Torch(recorder).install()
    if recorder.options["frames"]:
        recorder.frames = rlox_opt_frames.Frames(recorder)
    if recorder.options["ptrace"]:
        allow_ptrace()
