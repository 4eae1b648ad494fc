"""The samplers of a run of several processes: one perf, which follows forks, or a py-spy for each
process."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
from pathlib import Path

from rlox_opt.sampling import perf, pyspy
from rlox_opt.sampling.processes.run import keys
from rlox_opt.system.process import lives

PERF_RATE = 199  # Hz; a prime
PYSPY_RATE = 25  # Hz, of each process, which is stopped for each sample
BEGUN = "begun_ns"  # the file that says when a process's py-spy was started
_MOST_BYTES = "768M"  # of perf's data, 8 KiB a sample: then perf ends, and the run goes on
_SETTLED_S = 5.0  # a younger process still imports, which py-spy slows most of all
_PATIENCE_S = 30.0
_WRITING_S = 120.0
_A_DAY_S = 86_400.0


class Sampler:
    """Samples a program from outside."""

    name: str

    def begin(self, pid: int, folder: Path, from_s: float, for_s: float | None) -> None:
        """Sample a process that has not begun to work yet, and all processes that it will start."""
        self._folder, self._from = folder, from_s
        self._until = math.inf if for_s is None else from_s + for_s

    def poll(self, elapsed: float) -> None:
        """Called ten times a second with the seconds since the run began."""
        raise NotImplementedError

    def end(self) -> None:
        """Stop, and leave the samples in the folder."""
        raise NotImplementedError


def choose(name: str | None = None) -> Sampler | None:
    """The sampler of that name ("none": None); without a name, the better one that works here.

    Raises:
        ValueError: it cannot be used here; the message says why, and the remedy.
    """
    samplers: tuple[type[Sampler], ...] = (Perf, PySpy)
    for sampler, unavailable in zip(samplers, (perf.unavailable, pyspy.unavailable), strict=True):
        if name in (None, sampler.name):
            reason = unavailable()
            if reason is None:
                return sampler()
            if name is not None:
                raise ValueError(reason)
    return None


def why_none() -> str:
    """Sentences that say why no sampler works here; "" where one does."""
    no_perf, no_pyspy = perf.unavailable(), pyspy.unavailable()
    return f"{no_perf}. {no_pyspy}." if no_perf and no_pyspy else ""


class Perf(Sampler):
    """One perf for all: processes and threads that are started later inherit its events."""

    name = "perf"

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._on = False

    def begin(self, pid: int, folder: Path, from_s: float, for_s: float | None) -> None:
        super().begin(pid, folder, from_s, for_s)
        command, self._command = os.pipe()
        self._ack, ack = os.pipe()
        words = ["-B", "-D", "-1", "--control", f"fd:{command},{ack}", "--max-size", _MOST_BYTES]
        ends = command, ack
        self._process = perf.record(
            pid, folder, PERF_RATE, words, pass_fds=ends, start_new_session=True
        )
        os.close(command)
        os.close(ack)
        self.switch(from_s <= 0)  # perf answers when it is ready; before that nothing may fork

    def poll(self, elapsed: float) -> None:
        wanted = self._from <= elapsed < self._until
        if wanted != self._on:
            self.switch(wanted)

    def switch(self, on: bool) -> None:
        """Switch sampling on or off; returns when that is done."""
        if on:
            perf.switched_on(self._folder)
        self._tell("enable" if on else "disable")
        self._on = on

    def end(self) -> None:
        if self._process is None:
            return
        _stop(self._process)
        os.close(self._command)
        os.close(self._ack)
        self._process = None

    def _tell(self, command: str) -> None:
        """Send a command and wait for the answer; a perf that has ended gives none."""
        assert self._process is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self._command, f"{command}\n".encode())
        os.set_blocking(self._ack, False)
        deadline = time.monotonic() + _PATIENCE_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                if os.read(self._ack, 16):
                    return
            time.sleep(0.005)


class PySpy(Sampler):
    """One py-spy for each process that lives long enough."""

    name = "py-spy"

    def __init__(self) -> None:
        self._attached: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: set[str] = set()

    def poll(self, elapsed: float) -> None:
        if not self._from <= elapsed < self._until:
            return
        # Of keys with one process id the last counts: the others' programs were replaced by exec.
        last = {key.partition("-")[0]: key for key in sorted(keys(self._folder), key=_began_ns)}
        for pid, key in last.items():
            settled = time.monotonic_ns() >= _began_ns(key) + _SETTLED_S * 1e9
            if key in self._seen or not settled:
                continue
            self._seen.add(key)
            if not lives(int(pid)):
                continue
            into = self._folder / f"{key}.py-spy"
            into.mkdir()
            (into / BEGUN).write_text(str(time.monotonic_ns()))
            seconds = min(_A_DAY_S, self._until - elapsed)
            self._attached[key] = pyspy.attach(int(pid), seconds, into, PYSPY_RATE)

    def end(self) -> None:
        for process in self._attached.values():
            _stop(process)


def _began_ns(key: str) -> int:
    return int(key.partition("-")[2])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the process as Ctrl-C does, so that it writes its samples."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_WRITING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
