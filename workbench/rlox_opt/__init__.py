"""The start of the command line: what must be in place before the first import of `rlox_opt.cli`,
which takes most of a second, and after the last line of a verb.

Ctrl-C ends it with exit code 130 and no traceback, at any moment. What cannot be written to stdout
is remembered, so that it can be kept elsewhere; what cannot be written to stderr is dropped. Only
the standard library is imported here.
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
)  # as in rlox_opt.system.exits, which cannot be imported yet


class Out(io.TextIOWrapper):
    """stdout that remembers its text, and the error if it could not be written. A reader that stops
    early, such as `head`, is no error; the rest is not written."""

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
    """stderr, on which no measurement depends: text that cannot be written is dropped."""

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
        if heeded:  # nothing has begun, and an exception within an import may be swallowed
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
    if heeded:  # all is done and printed; only Python's own ending is left
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    return code


def _streams() -> None:
    """Set the three streams up, even if they are closed, or their encoding lacks characters."""
    # A closed stream's number is the lowest free one, so /dev/null gets it; otherwise the next file
    # that is opened would. stdout's is read-only, so that writing to it still fails, as it should.
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
    """Repeat a Ctrl-C that came in a finalizer, from which no exception gets out."""
    if isinstance(what.exc_value, KeyboardInterrupt):
        again = (threading.main_thread().ident, signal.SIGINT)
        threading.Timer(0.01, signal.pthread_kill, again).start()
    else:
        sys.__unraisablehook__(what)
