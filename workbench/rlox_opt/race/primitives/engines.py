"""A process for each engine, in an environment of its own, that prepares and times cases."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.harness.restarts import ContestError, ProcessEndedError, Worker
from rlox_opt.race import environments as racing
from rlox_opt.race.primitives.cases import Answer, Case, Engine, WrongError, checks
from rlox_opt.system.scratch import scratch

LIMIT_S = 600.0  # for one answer


class MissingError(Exception):
    """The engine does not offer the case; the message says why."""


class Process:
    """The process of one engine. It starts with the first command."""

    def __init__(self, engine: Engine, python: Path, threads: int, rng: random.Random) -> None:
        self.engine = engine
        self._python, self._threads, self._rng = python, threads, rng
        self._stack = contextlib.ExitStack()
        self._ask: Worker | None = None

    def __call__(self, command: str, *arguments: Any) -> Any:
        """Send a command and return the answer.

        Raises MissingError if the engine does not offer the case, and ContestError if it fails. A
        process that crashed or hung is given up, and the next command starts another.
        """
        try:
            answer = self._started()(command, *arguments)
        except ProcessEndedError:
            self.close()
            raise
        if isinstance(answer, dict) and "missing" in answer:
            raise MissingError(answer["missing"])
        return answer

    def _started(self) -> Worker:
        if self._ask is None:
            env = self._stack.enter_context(racing.environment(self.engine.peer))
            env["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # more would leave processes behind
            arguments = [self.engine.module, self.engine.form, str(self._threads)]
            self._ask = Worker(
                self.engine.peer.driver.with_name("serve.py"),
                arguments,
                self._rng,
                LIMIT_S,
                python=self._python,
                env=env,
            )
            self._stack.callback(self._ask.close)
        return self._ask

    def close(self) -> None:
        """End the process."""
        self._ask = None
        self._stack.close()


def validate(process: Process, case: Case) -> None:
    """Compare one call's results with the reference. Raises WrongError."""
    import numpy as np

    with scratch() as there:
        path = there / "answer.npz"
        process("answer", str(path))
        try:
            with np.load(path) as file:
                answer: Answer = {name: file[name] for name in file.files}
            checks(process.engine.peer.driver.parent).check(case, answer)
        except (LookupError, TypeError, ValueError) as problem:
            raise WrongError(f"its answer cannot be read: {problem!r}") from None


class Processes:
    """A process for each engine, which all end with the block."""

    def __init__(
        self,
        engines: Sequence[Engine],
        pythons: dict[str, Path],
        threads: int,
        rng: random.Random,
    ) -> None:
        # In random order, so that no engine always gets the memory that is free first.
        self._of = {
            engine.name: Process(engine, pythons[engine.name], threads, rng)
            for engine in rng.sample(list(engines), len(engines))
        }
        self.left_out: dict[str, str] = {}

    def __enter__(self) -> Processes:
        try:
            for name, process in list(self._of.items()):
                try:
                    process("hello")
                except ContestError as problem:
                    self.left_out[name] = f"does not start: {one_line(problem)}"
                    del self._of[name]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._of.values():
            process.close()

    def __iter__(self) -> Iterator[tuple[str, Process]]:
        return iter(self._of.items())


def one_line(problem: Exception) -> str:
    """An error's first and last line, as one line."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return ": ".join(dict.fromkeys([*lines[:1], *lines[-1:]])) or type(problem).__name__
