"""What every test starts from."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import chromium
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A runner in the background may have been started with Ctrl-C ignored, which its children inherit:
# the tests that interrupt one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Read when torch is first imported. Without it, MKL takes another kernel on some processors for a
# weight that lies elsewhere, and equal trainings differ in the last place.
os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the environment of all processes that the test starts holds, and of what these start.
    What a test that failed left running is ended."""
    name = f"TEST_{os.urandom(8).hex()}"
    monkeypatch.setenv(name, "1")
    yield name
    from rlox_opt.system import guard
    from survivors import bearing

    if bearing(name):
        guard.main(name)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread of torch: two spinning OpenMP threads on a busy machine can cost more than all the
    tests."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()
