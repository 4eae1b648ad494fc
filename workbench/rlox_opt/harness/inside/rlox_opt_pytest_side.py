"""A process that runs the benchmarks of a pytest suite on one build of a project.

It is started as `python rlox_opt_pytest_side.py SETTINGS`. Commands and answers are those of
`rlox_opt_side`. The settings have three more keys: `"root"`, the folder that pytest starts in;
`"ini"`, its settings file; and `"files"`, the files of the suite that have benchmarks, from the
root. A file outside packages has null. A file within a package has the name of its module, which
takes the place of the built package's own, and the folder that contains the package.

pytest runs in this process. A test runs until it calls its fixture `benchmark`, which is this
workbench's. There the test waits, and slices of its call are timed on command. When another command
comes, the test gets the result of its first call and runs to its end. A marked test without the
fixture is timed as a whole.

The process runs the project's own Python, so this file needs the standard library and pytest alone,
and Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import site
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from rlox_opt_benchmark import Call
from rlox_opt_built import Built
from rlox_opt_prepared import Skipped, busy_s, end_what_came_back, spans
from rlox_opt_reached import reached
from rlox_opt_side import check_origin, draw_from, opened, pads, pin
from rlox_opt_suite import told

_LONGEST = 400  # characters of a failing test's message
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_CLOCKS = (time.perf_counter, busy_s)  # kept here, since tests may replace time's clocks
_WITHIN = ("time", "call", "pin", "reached")  # the commands during which a test waits
_THREADS = Path("/proc/self/task")


class Ended(Exception):
    """A test ended in an unexpected way."""


class Side:
    """Answers commands, also while a test waits at its call."""

    def __init__(
        self,
        root: str,
        files: list[str],
        apart: dict[str, str],  # files that cannot be run, with the reasons
        built: Built,
        commands: TextIO,
        answers: TextIO,
    ) -> None:
        self._root, self._files, self._apart, self._built = root, files, apart, built
        self._commands, self._answers = commands, answers
        self._tests: Any = None  # the plug-in's tests, once pytest runs
        self._left: Any = None  # the command that made a waiting test go on
        self._answered = False
        self._name = ""
        self._call: Any = None  # the call at which a test waits
        self._few = 0  # calls to time while a test runs through
        self._bears = 0
        self._seconds = 0.0
        self._first: dict[str, list[float]] = {}  # seconds of first calls, by benchmark
        self._ending = ""  # why a test failed after its call
        self._noticed: dict[str, list[str]] = {}  # notes on later calls, by benchmark
        self._told = ""
        self._pads: list[bytearray] = []

    def serve(self, tests: Any) -> None:
        """Answer commands until their stream ends."""
        self._tests = tests
        while True:
            command, self._left = self._left or self._next(), None
            if command is None:
                return
            self._answered = False
            answer = self._answer_to(command)
            if not self._answered:
                self._say(answer)

    def _answer_to(self, command: list[Any]) -> Any:
        name, *arguments = command
        try:
            return getattr(self, name)(*arguments)
        except Skipped as error:
            return {"error": self.short(str(error)), "skipped": True}
        except Ended as error:
            return {"error": self.short(str(error))}
        except SystemExit as error:
            return {"error": f"it calls sys.exit({error.code!r})"}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # tests may raise anything, such as pytest's Exit
            return {"error": self.short(told(error))}

    def _next(self) -> Any:
        line = self._commands.readline()
        return json.loads(line) if line else None

    def _say(self, answer: Any) -> None:
        end_what_came_back()
        print(json.dumps(answer), file=self._answers, flush=True)

    def short(self, text: str) -> str:
        """A text without the folders of the side and of the suite, which no longer exist when
        somebody reads it. A long text is cut."""
        for folder in (self._built.folder, os.path.realpath(self._root), self._root):
            text = text.replace(folder + os.sep, "")
        text = " ".join(_ADDRESS.sub("", text).split())
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"

    def all(self, beginning: str) -> list[dict[str, Any]]:
        """The benchmarks of the files that may have names with this beginning, and what cannot be
        read."""
        of = [f for f in self._files if f.startswith(beginning) or beginning.startswith(f"{f}::")]
        self._tests.collect(of or self._files)
        self._check_origin()
        there = {name: ["time", None, self._tests.timeout(name)] for name in self._tests.items}
        broken = {where: self.short(why) for where, why in self._tests.broken.items()}
        return [{"benchmarks": there, "broken": {**self._apart, **broken}}]

    def builds(self) -> list[dict[str, Any]]:
        """What the package's `build_info()` returns; an empty dict without one."""
        package = importlib.import_module(self._built.packages[0])
        self._check_origin()
        said: object = getattr(package, "build_info", dict)()
        return [said if isinstance(said, dict) else {}]

    def _check_origin(self) -> None:
        check_origin(self._built.packages, self._built.folder)

    def load(self, number: int, name: str, seed: int) -> None:
        """Collect the suite, if it was not collected yet."""
        if name not in self._tests.items:
            draw_from(seed)
            self._tests.collect(self._files)
            self._check_origin()
        self._tests.named(name)

    def prepare(
        self, number: int, name: str, seed: int, alone: int | None, cache: str | None
    ) -> int:
        """Run a test up to its call, and make the call once. Returns how many calls may follow one
        run of the test; 0 is any number. With any number this is answered while the test waits."""
        self.load(number, name, seed)
        self._name, self._few, self._bears, self._seed = name, 0, 0, seed
        self._run(seed)
        return self._bears

    def _run(self, seed: int | None = None) -> None:
        """Run the test to its end, or until it waits. Raises Ended and Skipped."""
        if seed is not None:
            draw_from(seed)  # all sides then draw the same data
        self._call = None
        why, skipped = self._tests.run(self._name, lambda: draw_from(seed or 0))
        if self._answered:
            self._ending = why
        elif skipped:
            raise Skipped(why)
        elif why:
            raise Ended(why)
        elif self._call is None:
            raise Ended("it never calls what is to be timed: its fixture `benchmark`")

    def stop(self, call: Call) -> Any:
        """Time the test's call on command. Returns what the test gets as the call's result."""
        self._call = call
        if self._few:
            seconds, result = call.few(self._few)
            self._seconds += seconds
            return result
        result = call.first()
        if call.bears:
            self._bears = call.bears
            return result
        self._first.setdefault(self._name, []).append(call.first_s)
        self._say(call.alone)
        self._answered = True
        while True:
            command = self._next()
            if command is None or command[0] not in _WITHIN:
                break
            self._say(self._answer_to(command))
        self._left = command
        if len(self._first[self._name]) > 1:  # the first call of all is a warm-up
            noticed = self._noticed.setdefault(self._name, [])
            noticed.append(call.changed(min(self._first[self._name][1:])))
            self._told = noticed[-1] if all(noticed) else ""
        return result

    @staticmethod
    def pin(core: int | None) -> None:
        """Stay on one core, with the threads that the suite has started; None ends that."""
        pin(core)
        if _THREADS.is_dir():
            cores = os.sched_getaffinity(0)
            for thread in _THREADS.iterdir():
                with contextlib.suppress(OSError):  # it has ended, or is one of the kernel's
                    os.sched_setaffinity(int(thread.name), cores)

    def time(self, number: int, calls: int, warm: int) -> tuple[float, float, float]:
        """Seconds of the calls; seconds with their setups; processor seconds of all threads."""
        start, busy = (clock() for clock in _CLOCKS)
        if not self._bears:
            seconds = self._call.time(calls, warm)
        else:
            self._seconds = 0.0
            for done in range(0, calls, self._bears):
                self._few = min(self._bears, calls - done)
                self._run(self._seed)
            seconds = self._seconds
        end, busy_end = (clock() for clock in _CLOCKS)
        return seconds, end - start, busy_end - busy

    def call(self, n: int) -> list[tuple[int, int]]:
        """Call the prepared benchmark. Returns when its calls began and ended, in nanoseconds of
        the monotonic clock."""
        of: list[tuple[int, int]]
        with spans() as of:
            self.time(0, n, 0)
        return of

    def reached(self, number: int) -> list[tuple[str, int]]:
        """The functions of the build that one more call enters. The test waits meanwhile."""
        if self._bears:
            raise Ended("a run of its test has no call more, which could be looked at alone")
        places: list[tuple[str, int]] = reached(lambda: self._call.time(1, 0), self._built.folder)
        return places

    def forget(self, seed: int) -> str | None:
        """Change the memory layout for the next test. Raises Ended if the last test failed after
        its call. Returns a note for the user, if there is one."""
        self._bears, self._call = 0, None
        ending, self._ending = self._ending, ""
        self._pads = pads(seed)
        gc.collect()
        if ending:
            raise Ended(ending)
        noticed, self._told = self._told, ""
        return noticed or None


def main(settings: str) -> None:
    """Answer the commands on stdin until it ends."""
    commands, answers = opened()
    of = json.loads(settings)
    (side,) = of["sides"]
    sys.dont_write_bytecode = False  # all that is imported lies in folders of the workbench
    scratch, inside = Path.cwd(), str(Path(__file__).resolve().parent)
    os.chdir(of["root"])
    lent, apart = {}, {}
    for file, within in of["files"].items():
        if within and within[0].partition(".")[0] not in side["packages"]:
            package = within[0].partition(".")[0]
            apart[file] = f"lies within {package}, which is no package that was built"
        elif within:
            lent[within[0]] = str(Path(of["root"], within[1]))
    files = [file for file in of["files"] if file not in apart]
    built = Built(side["folder"], side["packages"], lent)
    built.first()
    site.addsitedir(built.folder)
    for name in lent:  # import their packages first: pytest may import those from beside the tests
        with contextlib.suppress(Exception):  # the test itself shows this error later
            importlib.import_module(name.rpartition(".")[0])
    sys.path.append(of["root"])
    serving = Side(of["root"], files, apart, built, commands, answers)
    try:
        sys.path.insert(0, inside)
        from rlox_opt_tests import run

        sys.path.remove(inside)
    except ModuleNotFoundError as error:
        why = f"its environment has no {error.name}, which its benchmarks need"
        remedy = f"name {error.name} among what its tests require, or add --with {error.name}"
        for _ in commands:
            print(json.dumps({"error": f"{why}; {remedy}"}), file=answers, flush=True)
        return
    why = run(serving, of["root"], of["ini"], files, scratch)
    for _ in commands:  # pytest ended before it served any command
        print(json.dumps({"error": serving.short(why)}), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
