"""The exit codes of every verb, in one place."""

from __future__ import annotations

GOOD = 0
DIFFERENCE = 1  # a regression, a difference, a failed test: what was asked about is so
CANNOT_TELL = 2  # undecided, or asked wrongly
OWN_ERROR = 3  # a fault of ours, or nothing could be written
INTERRUPTED = 130  # by Ctrl-C; what was finished is kept
