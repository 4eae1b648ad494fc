"""Fixtures for tests of the workbench, here and in the repository around it; a conftest.py imports
them."""

import compileall
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture
def start(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.Popen[str]]:
    """Starts rlox-opt, or another program, in a folder of its own that has the temporary files as
    well, or in the project's; all of it bears the mark."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))

    def begin(
        *words: object,
        program: tuple[str, ...] = ("-m", "rlox_opt.cli.main"),
        folder: Path = tmp_path,
    ) -> subprocess.Popen[str]:
        command = [sys.executable, *program, *map(str, words)]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, cwd=folder
        )

    return begin


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
