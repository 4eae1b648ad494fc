"""What somebody reads before a first report or change says what is so."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from projects import ROOT
from test_code_blocks import check_command

TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
ASKED = [*TEMPLATES, ROOT / "SECURITY.md"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_github_can_offer_the_template(path: Path) -> None:
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(head)
    assert about.keys() == {"name", "about"}
    assert all(about.values())
    assert "**" in body, "it asks for something"


@pytest.mark.parametrize("path", ASKED, ids=lambda path: path.stem)
def test_commands_that_are_asked_for_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for command in re.findall(r"`(rlox-opt [^`]+)`", text):
        words = shlex.split(command)
        if len(words) > 1 and words[1].startswith("-"):
            assert words[1:] == ["--version"]
            continue
        check_command([*words, "--help"])


def test_the_citation_names_what_is_here() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith(f"{cited['license']} License")
    (holder,) = re.findall(r"^Copyright \(c\) \d{4} (.*)$", licence, re.M)
    assert [author["name"] for author in cited["authors"]] == [holder]
