"""A terminal to run a command in, and what a person sees of it there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(
    words: Sequence[str],
    folder: Path,
    *,
    columns: int = 80,
    both: bool = False,
    passing: bool = False,
) -> tuple[int, list[str]]:
    """The exit code and the lines of a command in a terminal of 24 lines: those of stdout, or of
    `both` streams; with `passing` also those that others were written over."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = os.environ | {"TERM": "xterm-256color"}
    stderr = inner if both else subprocess.DEVNULL
    running = subprocess.Popen(
        words, cwd=folder, env=own, stdin=inner, stdout=inner, stderr=stderr, start_new_session=True
    )
    os.close(inner)
    seen = bytearray()
    try:
        while chunk := os.read(outer, 1 << 16):
            seen += chunk
    except OSError:  # Linux says so where the other end is closed
        pass
    finally:
        os.close(outer)
    text = _CODES.sub("", seen.decode()).replace("\r\n", "\n")
    lines = [line.split("\r") for line in text.split("\n")]
    return running.wait(60), [part for of in lines for part in (of if passing else of[-1:])]
