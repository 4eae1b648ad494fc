"""The error for a request that cannot be carried out."""

from __future__ import annotations


class UsageError(Exception):
    """An argument that cannot be used. The message is one line: its name, its value, the remedy."""
