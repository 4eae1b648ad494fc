"""What is told to who asked for something that cannot be done."""

from __future__ import annotations


class UsageError(Exception):
    """An argument that cannot be used: its name, its value and what would do, in one line."""
