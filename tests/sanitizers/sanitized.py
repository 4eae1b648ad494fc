"""A pytest plug-in that checks that each testing process has the sanitizer's extension."""

import os
from pathlib import Path

from rlox import _core


def pytest_configure() -> None:
    """Refuse another extension."""
    found, wanted = Path(_core.__file__), Path(os.environ["RLOX_SANITIZED"])
    assert found.is_relative_to(wanted), f"{found} is not the extension under {wanted}"
