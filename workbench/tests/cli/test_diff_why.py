"""`rlox-opt diff --why` over suites of commands and of pytest, as a user has it; and what time it
takes unasked."""

from pathlib import Path
from typing import Any

import pytest
import small_projects
import strangers

from rlox_opt.cli import why
from rlox_opt.sampling import perf, pyspy

THING = """
import sys


def total(n):
    found = 0
    for number in range(n):
        found += number
    return found


def work():
    return total({n})


def main():
    for _ in range(20):
        work()
"""
SCRIPT = (
    'files["thing-1.dist-info/entry_points.txt"] = b"[console_scripts]\\nthing-run = thing:main\\n"'
)
COMMANDS = """
[tool.rlox-opt.suite.commands]
script = "thing-run"
other = "sh -c true"
"""
SHORT = ("--restarts", "5", "--threshold", "20", "--no-counts", "--no-coverage")
needs_pyspy = pytest.mark.skipif(bool(pyspy.unavailable()), reason="py-spy cannot be used here")


def looked(root: Path) -> dict[str, Any]:
    files = small_projects.own(THING.format(n=1_000), SCRIPT)
    files["pyproject.toml"] = small_projects.PYPROJECT + COMMANDS
    base, head = small_projects.repository(root, files, {"thing.py": THING.format(n=100_000)})
    found = strangers.asked(root, "diff", base, head, *SHORT, "--bench", "script", "--why")
    (of,) = found["why"]
    said: dict[str, Any] = of
    return said


@pytest.mark.slow
@needs_pyspy
def test_a_command_that_is_slower_is_looked_into_from_its_start_to_its_end(tmp_path: Path) -> None:
    of = looked(tmp_path / "thing")
    assert of["benchmark"] == "script"
    assert [each["name"] for each in of["touched"]] == ["work"], of
    assert of["functions"][0]["name"] == "total"
    assert of["functions"][0]["place"] == "thing.py"
    assert of["layers"][0]["whose"] == "own Python"
    assert (perf.unavailable() is not None) == any("kernel" in why for why in of["missing"])


@pytest.mark.parametrize(
    ("asked", "budget", "spent", "kept", "left"),
    [
        (None, 600.0, 525.0, 75.0, 75.0),
        (None, 100.0, 85.0, 15.0, 15.0),
        (None, 50.0, 6.0, 0.0, 44.0),  # too little to keep some, but some is left
        (None, 50.0, 43.0, 0.0, 0.0),  # too little to find anything
        (True, 50.0, 50.0, 0.0, 75.0),  # time of its own
        (False, 600.0, 60.0, 0.0, 0.0),
    ],
)
def test_unasked_it_takes_a_part_of_the_budget_and_says_so_before(
    asked: bool | None, budget: float, spent: float, kept: float, left: float
) -> None:
    assert why.reserved(asked, budget) == kept
    assert why.left(asked, budget, spent) == left
    told = why.announced(asked, budget)
    assert bool(told) == (asked is not False)
    assert not told or "75 s" in told
