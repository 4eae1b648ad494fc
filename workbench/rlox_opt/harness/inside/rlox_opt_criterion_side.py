"""A process that runs criterion benchmarks of one build of a project.

It is started as `python rlox_opt_criterion_side.py SETTINGS`, and has the settings and the commands
of `rlox_opt_side`. The settings may have one more key: `"env"`, variables for the bench programs.

The side's folder holds the compiled bench programs, and `benches.json` says what each is called
and where it runs. A call of a benchmark is a short run of its program with that benchmark alone,
whose samples are read here. So every call has a process and memory of its own, and a new setup
would change nothing.

This file needs the standard library alone, and Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rlox_opt_processes import of_children, serve
from rlox_opt_side import pin

# The seconds of a run that times one benchmark. Criterion calls the function 1, 2, 4, … times until
# the warm-up is over, so the warm-up lasts up to twice as long as asked for, or as one call. 50 ms
# suffice for caches, branch predictors and the clock speed, and are short beside the samples.
# Criterion takes ten samples at the least; they share 100 ms. Where a call takes nanoseconds, the
# shortest sample lasts 1.8 ms, and reading the clock twice is less than 0.01 % of that. Where a
# call takes 100 ms, each sample is one call, and the run lasts 1.1 s. Most runs last 0.2 s, so both
# sides are timed while the machine is in the same state.
_WARM_UP_S, _MEASURED_S, _SAMPLES = 0.05, 0.1, 10
# Some versions before 0.4 take whole seconds alone; a run then lasts some two and a half seconds.
_BRIEF, _BRIEF_OF_OLD = (
    ("--warm-up-time", f"{warm_up_s}", "--measurement-time", f"{measured_s}",
     "--sample-size", f"{_SAMPLES}")
    for warm_up_s, measured_s in ((_WARM_UP_S, _MEASURED_S), (1, 1))
)  # fmt: skip
_NO_FRACTION = f"The argument '{_WARM_UP_S}' isn't a valid value"
# A group may ask for more time in its source, which criterion obeys before the command line, and
# ten calls may take long. A benchmark whose run takes more than this, beside what its program does
# before any benchmark, is run with `--quick` from then on: the function is called 1, 2, 4, … times
# until two results in a row agree or the time is over, whatever the group asks for.
_LONG_S = 2.0
_QUICK = ("--quick", "--measurement-time", "1")
_OF_QUICK = b"until the significance level has been reached"  # stands in the help of `--quick`
_TOLD_OF_QUICK = f"a run of it takes more than {_LONG_S:g} s, so it is timed by criterion's --quick"
# Criterion's mode for profilers: it calls the function for so many seconds and does nothing else.
_LOOKED_AT = ("--profile-time", "1")
# Criterion's own analysis is not used: no pictures, and few resamples.
_NO_ANALYSIS = ("--noplot", "--nresamples", "100")
_LISTED = re.compile(r"^(.+): bench(?:mark)?$")  # "bench" before criterion 0.4
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")  # what a regular expression of Rust may escape
_OF_CARGO = {"CRITERION_HOME", "CARGO_CRITERION_PORT", "CARGO_TARGET_DIR"}
# Not what the loader says of a library that is not installed.
_NOT_THERE = re.compile(
    r"(?<!object file: )No such file or directory|\bNotFound\b|FileNotFoundError"
)
_REMEDY = (
    "; only what git has is in its folder: before-build under [workspace.metadata.rlox-opt] of the "
    "project's Cargo.toml, or [package.metadata.rlox-opt] without a workspace, can fetch more"
)
_TAIL_LINES = 6
_LIST_S = 100.0


class Bench(NamedTuple):
    """A compiled program of benchmarks: its file, the beginning of its benchmarks' names, and the
    folder and the environment variables to run it with."""

    program: str
    name: str
    folder: str
    env: dict[str, str]


class Ran(NamedTuple):
    """A run of a program: seconds of one call of its benchmark, and of the whole run wall seconds
    and processor seconds of all threads."""

    seconds: float
    whole: float
    busy: float


class TooLong(Exception):
    """A run that was ended because it reached its limit."""


class Side:
    """The benchmarks of one build. Its methods are those of `Arena` in `rlox_opt_side`."""

    pin = staticmethod(pin)

    def __init__(self, folder: str, env: dict[str, str]) -> None:
        self._folder, self._lent = Path(folder), env
        told = json.loads((self._folder / "benches.json").read_text(encoding="utf-8"))
        self._benches = [Bench(**each) for each in told]
        self._listed: dict[str, list[str]] = {}  # criterion's own ids, by program
        self._listing: dict[str, float] = {}  # seconds that took
        self._brief = dict.fromkeys((bench.program for bench in self._benches), _BRIEF)
        self._prepared: tuple[Bench, str, bool] | None = None

    def all(self, beginning: str) -> list[dict[str, Any]]:
        """The benchmarks of the programs that may have names with this beginning, and the programs
        that cannot list theirs, with the reasons."""
        there: dict[str, list[Any]] = {}
        broken: dict[str, str] = {}
        for bench in self._benches:
            prefix = f"{bench.name}::"
            if not (prefix.startswith(beginning) or beginning.startswith(prefix)):
                continue
            try:
                names = [f"{prefix}{id_}" for id_ in self._ids(bench)]
            except Exception as error:
                remedy = _REMEDY if _NOT_THERE.search(f"{error}") else ""
                broken[bench.name] = self.short(f"{error}") + remedy
            else:
                there.update((name, ["timeraw", None, None]) for name in names)
        return [{"benchmarks": there, "broken": broken}]

    def builds(self) -> list[dict[str, Any]]:
        """Criterion programs say nothing of how their build was made."""
        return [{}]

    def load(self, number: int, name: str, seed: int) -> None:
        """Nothing is imported here."""

    def prepare(
        self, number: int, name: str, seed: int, alone: int | None, cache: str | None
    ) -> int:
        """Prepare a benchmark. Unless `alone` already says it, a run shows whether the benchmark
        takes so long that it needs `--quick`. What its program does before any benchmark does not
        count: it does the same to list them. Returns 1 if so, otherwise 0."""
        bench, id_ = self._found(name)
        quick = bool(alone)
        if alone is None and self._can_be_quick(bench):
            try:
                self._ids(bench)
                self._run(bench, id_, False, _LONG_S + self._listing[bench.name])
            except TooLong:
                quick = True
        self._prepared = bench, id_, quick
        return int(quick)

    def forget(self, seed: int) -> str:
        """Nothing is kept between two runs. Returns a note for the user on how it was timed."""
        quick = self._prepared is not None and self._prepared[2]
        self._prepared = None
        return _TOLD_OF_QUICK if quick else ""

    def time(self, number: int, calls: int, warm: int) -> tuple[float, float, float]:
        """Seconds of `calls` calls, from one run; wall seconds of the run; processor seconds of all
        its threads. The program does its own warm-up, so `warm` is not used."""
        ran = self._run(*self._of_prepared())
        return ran.seconds * calls, ran.whole, ran.busy

    def call(self, calls: int) -> None:
        """Run the benchmark `calls` times for a second each, while a sampler watches."""
        bench, id_, _ = self._of_prepared()
        for _ in range(calls):
            with _home() as home:
                command = self._command(bench, *_LOOKED_AT, _only(id_))
                with _started(command, bench, self._env(bench, home)) as process:
                    _answer(process, None)

    def value(self) -> float:
        """Seconds of a call."""
        return self._run(*self._of_prepared()).seconds

    def short(self, text: str) -> str:
        """A text without the side's folders, which no longer exist when somebody reads it."""
        for folder in (str(self._folder), *(bench.folder for bench in self._benches)):
            text = text.replace(folder + os.sep, "")
        return text

    def _of_prepared(self) -> tuple[Bench, str, bool]:
        if self._prepared is None:
            raise LookupError("no benchmark is prepared")
        return self._prepared

    def _found(self, name: str) -> tuple[Bench, str]:
        for bench in self._benches:
            prefix = f"{bench.name}::"
            if name.startswith(prefix):
                return bench, name[len(prefix) :]
        raise LookupError(f"no program has {name} here")

    def _ids(self, bench: Bench) -> list[str]:
        if bench.name not in self._listed:
            start = time.perf_counter()
            with _started(self._command(bench, "--list"), bench, self._env(bench, None)) as process:
                out = _answer(process, _LIST_S)
            self._listing[bench.name] = time.perf_counter() - start
            found = (_LISTED.match(line) for line in out.splitlines())
            self._listed[bench.name] = [match[1] for match in found if match]
        return self._listed[bench.name]

    def _can_be_quick(self, bench: Bench) -> bool:
        """Whether the program was built with criterion 0.4 or later."""
        return _OF_QUICK in (self._folder / bench.program).read_bytes()

    def _command(self, bench: Bench, *arguments: str) -> list[str]:
        return [str(self._folder / bench.program), "--bench", *arguments]

    def _env(self, bench: Bench, home: str | None) -> dict[str, str]:
        """The environment variables of a run. Old versions of criterion write their results below
        cargo's target folder, so both variables name `home`."""
        own = {name: value for name, value in os.environ.items() if name not in _OF_CARGO}
        told = {} if home is None else {"CRITERION_HOME": home, "CARGO_TARGET_DIR": home}
        return {**own, **self._lent, **bench.env, **told}

    def _run(self, bench: Bench, id_: str, quick: bool, limit_s: float | None = None) -> Ran:
        how = _QUICK if quick else self._brief[bench.program]
        command = self._command(bench, *how, *_NO_ANALYSIS, _only(id_))
        try:
            with _home() as home:
                start = time.perf_counter()
                with _started(command, bench, self._env(bench, home)) as process:
                    before = of_children()
                    _answer(process, limit_s)
                    whole = time.perf_counter() - start
                return Ran(_seconds(Path(home)), whole, of_children() - before)
        except RuntimeError as error:
            if how is not _BRIEF or _NO_FRACTION not in f"{error}":
                raise
            self._brief[bench.program] = _BRIEF_OF_OLD
            return self._run(bench, id_, quick, limit_s)


def _only(id_: str) -> str:
    """The pattern that fits this benchmark alone."""
    return "^" + _SPECIAL.sub(lambda match: "\\" + match[0], id_) + "$"


@contextlib.contextmanager
def _home() -> Iterator[str]:
    """A folder for the files that a run of criterion writes; it is removed with the block's end."""
    home = tempfile.mkdtemp(prefix="criterion-", dir=_HERE)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _started(
    command: list[str], bench: Bench, env: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A running program. It ends with the block, and also if this process ends."""
    process = subprocess.Popen(
        command,
        cwd=bench.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _answer(process: subprocess.Popen[str], limit_s: float | None) -> str:
    """What a program prints until it ends. Raises TooLong if that takes more than `limit_s`
    seconds, and RuntimeError if the program fails."""
    try:
        out, said = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise TooLong(f"it takes more than {limit_s} s") from None
    if process.returncode:
        status = process.returncode
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        lines = [line for line in f"{out}\n{said}".splitlines()
                 if line.strip() and "Benchmarking" not in line]  # fmt: skip
        why = " ".join(" ".join(lines[-_TAIL_LINES:]).split())
        raise RuntimeError(f"its program fails ({how}): {why or 'it says nothing'}")
    return out


def _seconds(home: Path) -> float:
    """Seconds of a call: the median over the samples that a run left in `home`.

    A short disturbance of the machine hits some of the samples, and the median leaves those out.
    """
    found = sorted(home.rglob("new/sample.json"))
    if not found:
        raise RuntimeError("it leaves no samples: it calls none of criterion's `iter` functions")
    saved = json.loads(found[0].read_text(encoding="utf-8"))
    # Before criterion 0.3.4 two lists, without names.
    iterations, times = saved if isinstance(saved, list) else (saved["iters"], saved["times"])
    of_calls = [ns / n for n, ns in zip(iterations, times) if n]
    if not of_calls or min(of_calls) <= 0:
        raise RuntimeError("its samples say that a call takes no time")
    return float(statistics.median(of_calls)) / 1e9


def main(settings: str) -> None:
    """Answer the commands on stdin until it ends."""
    told = json.loads(settings)
    (of,) = told["sides"]
    serve(
        lambda: Side(of["folder"], told.get("env", {})),
        lambda side, error: side.short(f"{type(error).__name__}: {error}"),
    )


_HERE = Path.cwd()

if __name__ == "__main__":
    main(sys.argv[1])
