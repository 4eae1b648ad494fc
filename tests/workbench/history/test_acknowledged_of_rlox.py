"""The regressions that this repository means."""

import projects
from rlox_opt.history import acknowledged


def test_the_entries_of_this_project_are_whole() -> None:
    assert acknowledged.load(projects.HERE.acknowledged)
