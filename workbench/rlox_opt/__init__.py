"""The door of the command line: what must hold before the first import of `rlox`, which takes most
of a second, and after the last line of a verb.

Ctrl-C ends it with 130 and no traceback, whenever it comes. What stdout cannot take is remembered,
so that it can be kept elsewhere; what stderr cannot take is let go. Only the standard library is
imported here.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator

_OWN_ERROR, _INTERRUPTED = (
    3,
    130,
)  # rlox_opt.system.exits, which is not to be had before the imports


class Out(io.TextIOWrapper):
    """stdout that remembers what it was given, and why it could not write it. A reader that has had
    enough, such as `head`, is no fault: it hears nothing more."""

    def __init__(self, *arguments: object, **more: object) -> None:
        super().__init__(*arguments, **more)  # type: ignore[arg-type]
        self.said: list[str] = []
        self.failed: OSError | None = None

    def write(self, text: str, /) -> int:
        self.said.append(text)
        with self._failing():
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with self._failing():
            super().flush()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        except OSError as error:
            self.failed = self.failed or error


class Err(io.TextIOWrapper):
    """stderr, of which no measurement depends: what it cannot write is lost."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def main() -> int:
    """Run the command line; returns the exit code."""
    _streams()
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if heeded:  # nothing has begun: an exception within an import would not always come out
            signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
        sys.unraisablehook = _unraisable
        try:
            from rlox_opt.cli import main as cli
        except Exception as error:
            why = " ".join(str(error).split())
            sys.stderr.write(
                f"rlox-opt: cannot start: {type(error).__name__}: {why}; "
                f"`{sys.executable} -c 'import rlox_opt.cli.main'` shows where\n"
            )
            return _OWN_ERROR
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = cli.main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 0
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if heeded:  # all is done and told; what is left is Python's own end
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    return code


def _streams() -> None:
    """The three streams, also where they are closed, and whatever their encoding cannot say."""
    # The lowest number that is free is the one that is closed. Writing to stdout fails then, as it
    # should; were it left closed, the next file that is opened would take its place.
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    for name, number, kind in (("stdout", 1, Out), ("stderr", 2, Err)):
        there: io.TextIOWrapper | None = getattr(sys, name)
        buffer = there.buffer if there else io.BufferedWriter(io.FileIO(number, "w", closefd=False))
        new = kind(
            buffer,
            encoding=there.encoding if there else "utf-8",
            errors="backslashreplace",
            line_buffering=bool(there and there.line_buffering),
            write_through=bool(there and there.write_through),
        )
        setattr(sys, name, new)


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Ctrl-C in a finalizer, where no exception comes out, is tried again behind it."""
    if isinstance(what.exc_value, KeyboardInterrupt):
        again = (threading.main_thread().ident, signal.SIGINT)
        threading.Timer(0.01, signal.pthread_kill, again).start()
    else:
        sys.__unraisablehook__(what)
