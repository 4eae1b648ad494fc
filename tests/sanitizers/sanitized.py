"""A plug-in of pytest: each process that tests has the extension of the sanitizer, no other."""

import os
from pathlib import Path

from rlox import _core


def pytest_configure() -> None:
    """Refuses another extension."""
    found, wanted = Path(_core.__file__), Path(os.environ["RLOX_SANITIZED"])
    assert found.is_relative_to(wanted), f"{found} is not the extension under {wanted}"
