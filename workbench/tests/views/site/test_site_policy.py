"""What somebody put into a page of the history neither runs nor loads."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import made_up_history
import pytest
from hostile_html import harm

from rlox_opt.views.site.layout import benchmark_path, commit_path
from rlox_opt.views.site.model import History

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.parametrize("kind", ["overview", "benchmark", "commit", "profiles"])
def test_a_page_of_the_history(
    browser: "Browser", pages: Path, history: History, tmp_path: Path, kind: str
) -> None:
    path = {
        "overview": "index.html",
        "benchmark": benchmark_path(made_up_history.NAMES[1]),
        "commit": commit_path(history.commits[12].hash),
        "profiles": "profiles.html",
    }[kind]
    copy = tmp_path / path
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(pages / path, copy)
    shutil.copytree(pages / "static", tmp_path / "static")
    assert harm(browser, copy) == []
