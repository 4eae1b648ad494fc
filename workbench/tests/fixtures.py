"""Fixtures for tests of the workbench, here and in the repository around it; a conftest.py imports
them."""

import compileall
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import chromium
import hypothesis
import pytest
from survivors import bearing

from rlox_opt.system import guard

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# By itself hypothesis fails a case that takes over 200 ms, as any may on a busy machine.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# Tests start hundreds of processes. Without bytecode each would compile all that it imports again,
# torch too, which takes longer than what most of them are asked.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Sides that are measured read it, and write none.
compileall.compile_dir(Path(guard.__file__).parents[1], quiet=2)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A text in the environment of all processes that the test starts, and of their descendants.
    Processes that a failed test left running are ended."""
    name = f"TEST_{os.urandom(8).hex()}"
    monkeypatch.setenv(name, "1")
    yield name
    if bearing(name):
        guard.main(name)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium without a window. A machine without it skips the test, or fails it where CI has set
    $RLOX_CHROMIUM to "needed"."""
    path = chromium.found()
    if path is None or importlib.util.find_spec("playwright") is None:
        absent = "no Chromium that starts on this machine, or no playwright"
        if os.environ.get("RLOX_CHROMIUM") == "needed":
            pytest.fail(absent)
        pytest.skip(absent)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # In a container Chromium has neither its sandbox nor a large /dev/shm.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        # It has half a minute to start by itself, which may not do on a busy machine.
        browser = driver.chromium.launch(executable_path=path, args=arguments, timeout=120_000)
        yield browser
        browser.close()
