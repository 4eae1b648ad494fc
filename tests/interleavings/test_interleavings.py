"""What `make interleavings ARGS=--planted` plants is there to be replaced."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUGS = tomllib.loads(Path(__file__).with_name("planted.toml").read_text())["bug"]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["breaks"])
def test_what_a_planted_bug_replaces_stands_once_in_its_file(bug: dict[str, str]) -> None:
    assert (ROOT / bug["file"]).read_text().count(bug["find"]) == 1
    assert bug["find"] != bug["replace"]


def test_either_hand_over_has_bugs() -> None:
    assert {Path(bug["file"]).stem for bug in BUGS} == {"offer", "collector"}
