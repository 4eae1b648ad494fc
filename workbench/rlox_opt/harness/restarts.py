"""Contests in new processes. Each restart is a new process, and so has a new memory layout."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.system.process import end_now

_WORKER = Path(__file__).with_name("twins_worker.py")
_SLICE_S = 0.0005
_PATIENCE_S = 600.0
_TAIL_LINES, _TAIL_BYTES = 12, 1 << 14
_POLL_S = 0.5
SAME_ORDER = {"PYTHONHASHSEED": "0"}  # sets then have the same order in every process


class ContestError(RuntimeError):
    """A contest that could not take place."""


class ProcessEndedError(ContestError):
    """A process that crashed or hung; the message ends with the last lines of its stderr."""


class SkippedError(ContestError):
    """A benchmark that asked to be skipped."""


class TwinsDifferError(ContestError):
    """The two sides of a contest return different things."""


@dataclass(frozen=True)
class Cell:
    """One size of one workload of one pair."""

    id: str
    workload: str
    size: tuple[tuple[str, int], ...]

    @property
    def key(self) -> list[Any]:
        """The cell as the worker's commands name it."""
        return [self.id, self.workload, dict(self.size)]


@dataclass(frozen=True)
class Reading:
    """What one process measured: ln(baseline / other), the same of the baseline against itself
    (None where it was not timed twice), and the median seconds of a call of each."""

    log_ratio: float
    log_ratio_aa: float | None
    baseline_s: float
    optimized_s: float


class Worker:
    """A running process that answers commands, one line of JSON each.

    It runs `python SCRIPT ARGUMENTS`, in this interpreter, environment and folder unless others are
    given. An answer may take `limit_s` seconds, and not beyond `time.monotonic() = until`; the
    message ends with `remedy` if it takes longer.
    """

    def __init__(
        self,
        script: Path,
        arguments: Sequence[Path | str],
        rng: random.Random,
        limit_s: float = _PATIENCE_S,
        under: Sequence[str] = (),
        python: Path | str = sys.executable,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        # The size of the environment shifts the stack, and so which data share cache lines.
        own = {**os.environ, **SAME_ORDER} if env is None else env
        environment = {**own, "RLOX_PAD": "x" * rng.randrange(4096)}
        self.limit_s, self.until = limit_s, math.inf
        self.remedy = ""
        self._process = subprocess.Popen(
            [*under, str(python), str(script), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,  # Ctrl-C then reaches this process alone, which ends the worker
        )
        self._answers = b""
        self._stderr = b""
        threading.Thread(target=self._drain, daemon=True).start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def __call__(self, command: str, *arguments: Any) -> Any:
        """Send a command and wait for its answer. Raises `ContestError` if there is none."""
        self.send(command, *arguments)
        return self.answer()

    def send(self, command: str, *arguments: Any) -> None:
        """Send a command. `answer` waits for its answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([command, *arguments]).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the answer to the command sent last. Raises `ContestError` if there is none."""
        line = self._line()
        try:
            answer = json.loads(line)
        except ValueError:
            raise ProcessEndedError(f"answered what is none: {line[:80]!r}") from None
        if isinstance(answer, dict) and "error" in answer:
            kinds = {"differ": TwinsDifferError, "skipped": SkippedError}
            kind = next((kinds[of] for of in kinds if answer.get(of)), ContestError)
            raise kind(answer["error"])
        return answer

    def _line(self) -> bytes:
        """The next line that the process writes. Raises ProcessEndedError."""
        assert self._process.stdout is not None
        until = min(time.monotonic() + self.limit_s, self.until)
        while b"\n" not in self._answers:
            left = until - time.monotonic()
            if left <= 0:
                raise ProcessEndedError(f"did not answer within {self.limit_s:.0f} s{self.remedy}")
            ended = self._process.poll() is not None  # asked first, so that no last words are lost
            if select.select([self._process.stdout], [], [], min(left, _POLL_S))[0]:
                chunk = os.read(self._process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise ProcessEndedError(self._ending())
                self._answers += chunk
            elif ended:  # a process it forked may keep the pipe open
                raise ProcessEndedError(self._ending())
        line, _, self._answers = self._answers.partition(b"\n")
        return line

    def end(self) -> None:
        """End the process, and the processes that it started. A thread that waits for an answer
        gets a ContestError."""
        end_now(self._process)

    def close(self) -> None:
        """End the process as `end` does, and close its pipes."""
        self.end()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _drain(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            while chunk := os.read(stderr.fileno(), 1 << 16):
                self._stderr = (self._stderr + chunk)[-_TAIL_BYTES:]

    def _ending(self) -> str:
        try:
            status = self._process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            return "the process closed the pipe that it answers on"
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        lines = self._stderr.decode(errors="replace").strip().splitlines()[-_TAIL_LINES:]
        return "\n".join([f"the process ended ({how})", *lines])


@contextlib.contextmanager
def worker(extension: Path, rng: random.Random, script: Path = _WORKER) -> Iterator[Worker]:
    """A process that has loaded one build of the extension. It ends with the block."""
    with contextlib.closing(Worker(script, [extension], rng)) as running:
        yield running


def twins(
    extension: Path, cells: Sequence[Cell], seconds: float, seed: int, script: Path = _WORKER
) -> Iterator[tuple[Cell, Reading]]:
    """One restart of contests between the twins of an extension, in random order. They run in one
    process of `script`, which must answer `contest`."""
    rng = random.Random(seed)
    with worker(extension, rng, script) as ask:
        for cell in rng.sample(cells, len(cells)):
            try:
                log_ratio, aa, baseline_s, optimized_s, _ = ask(
                    "contest", *cell.key, seconds, rng.getrandbits(63)
                )
            except ContestError as error:
                size = ", ".join(f"{name}={number}" for name, number in cell.size)
                raise type(error)(f"{cell.workload} ({size}): {error}") from None
            yield cell, Reading(log_ratio, aa, baseline_s, optimized_s)


def builds(
    extensions: Mapping[str, Path], cells: Sequence[Cell], seconds: float, seed: int
) -> Iterator[tuple[Cell, Reading]]:
    """One restart of contests between two builds, "baseline" and "optimized". Each has a process of
    its own, and the calls alternate between them. Both builds run the baseline twins."""
    rng = random.Random(seed)
    sides = ["baseline", "optimized"]
    with contextlib.ExitStack() as stack:
        ask = {
            side: stack.enter_context(worker(extensions[side], rng))
            for side in rng.sample(sides, 2)
        }
        for cell in rng.sample(cells, len(cells)):
            calls, outcomes = 1, []
            for side in sides:
                ask[side]("arm", *cell.key, "baseline")
                ask[side]("time", 1)
                outcomes.append(ask[side]("outcome"))
                while ask[side]("time", calls) < _SLICE_S:
                    calls *= 2
            if outcomes[0] != outcomes[1]:
                raise TwinsDifferError(f"the builds differ: {outcomes[0]} and {outcomes[1]}")
            times: dict[str, list[float]] = {side: [] for side in sides}
            while sum(times["baseline"]) * calls < seconds / 2:
                for side in rng.sample(sides, 2):
                    times[side].append(ask[side]("time", calls) / calls)
            ratios = [
                math.log(b / o) for b, o in zip(*(times[side] for side in sides), strict=True)
            ]
            baseline_s, optimized_s = (statistics.median(times[side]) for side in sides)
            yield cell, Reading(statistics.median(ratios), None, baseline_s, optimized_s)


def shares(extension: Path, cell: Cell, seconds: float, seed: int) -> Reading:
    """One restart: how much of its speed another Python thread keeps while either twin runs.

    The reading's seconds are the inverse of that share: the other thread's time for a unit of work.
    """
    rng = random.Random(seed)
    with worker(extension, rng) as ask:
        share = {
            twin: ask("share", *cell.key, twin, seconds)
            for twin in rng.sample(["baseline", "optimized"], 2)
        }
    baseline_s, optimized_s = 1 / share["baseline"], 1 / share["optimized"]
    return Reading(math.log(baseline_s / optimized_s), None, baseline_s, optimized_s)
