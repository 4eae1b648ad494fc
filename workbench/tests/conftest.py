"""Fixtures of every test."""

import os
import signal

import pytest
import toy_projects
from fixtures import browser, mark, start

__all__ = ["browser", "mark", "start"]

# A runner in the background may have been started with Ctrl-C ignored, which its children inherit:
# the tests that interrupt one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# pytest-xdist sets it for its workers, and readline for the processes that pytest starts, where
# os.environ does not show it. It would fold the lines that commands print into a pipe.
os.environ["COLUMNS"] = ""


@pytest.fixture(autouse=True)
def in_the_toy_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line works on the toy project, wherever pytest was started."""
    monkeypatch.chdir(toy_projects.PROJECT.root)
