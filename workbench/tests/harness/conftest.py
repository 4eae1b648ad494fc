"""Two equal builds, with a suite of one's own."""

from collections.abc import Callable
from pathlib import Path

import pytest
import toy_packages

from rlox_opt.harness import packages as packages_module
from rlox_opt.harness.packages import SIDES, Packages
from rlox_opt.harness.side_processes import Side, Suite


@pytest.fixture
def short_contests(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that check what is measured, not how exactly."""
    monkeypatch.setattr(packages_module, "_CONTEST_S", 0.01)
    monkeypatch.setattr(packages_module, "_CONTESTS", 1)


@pytest.fixture(params=["a process each", "one process"])
def made(
    tmp_path: Path, request: pytest.FixtureRequest, short_contests: None
) -> Callable[..., Packages]:
    """Two equal builds, with a suite of these modules."""

    def of(limit_s: float = 30.0, **modules: str) -> Packages:
        folder = tmp_path / "benchmarks"
        folder.mkdir()
        for name, text in {"__init__": "", **modules}.items():
            (folder / f"{name}.py").write_text(text)
        sides = {side: Side(toy_packages.package(tmp_path / side), ("toy",)) for side in SIDES}
        return Packages(sides, Suite(folder), limit_s, together=request.param == "one process")

    return of
