"""A history of toys for `record`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_history


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Make a history of toys, which `main` then works on."""

    def of(*settings: dict[str, Any]) -> list[str]:
        made = toy_history.commits(tmp_path, list(settings))
        toy_history.patch(tmp_path, monkeypatch.chdir, monkeypatch.setattr)
        return made

    return of
