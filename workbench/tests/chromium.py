"""The Chromium for the page tests. As a program it says whether there is one that starts."""

import contextlib
import functools
import shutil
import subprocess
import sys
from collections.abc import Iterator

NAMES = ("chromium", "chromium-browser", "chrome", "google-chrome")


@functools.cache
def found() -> str | None:
    """The path of the first that starts; None without any."""
    for path in _candidates():
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            # What stands there may only say where to get it, as Ubuntu's does.
            if subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0:
                return path
    return None


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, NAMES))
    with contextlib.suppress(ImportError):
        from playwright.sync_api import sync_playwright

        with sync_playwright() as driver:  # `playwright install chromium` puts it there
            yield driver.chromium.executable_path


if __name__ == "__main__":
    path = found()
    print(path or "no Chromium starts here")
    sys.exit(path is None)
