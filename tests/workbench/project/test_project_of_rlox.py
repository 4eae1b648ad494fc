"""This repository as a project."""

from pathlib import Path

import projects
from rlox_opt.project.builds import Cargo


def test_this_repository_is_described_by_its_own_table() -> None:
    assert Path(__file__).parents[3] == projects.ROOT
    assert isinstance(projects.HERE.settings.build, Cargo)
    assert projects.HERE.suite.is_dir()
    assert projects.HERE.history.is_dir()
    for kind, files in projects.HERE.settings.twins.switches.items():
        assert kind in projects.HERE.settings.twins.tests
        assert all((projects.ROOT / file).is_file() for file in files)
    assert projects.HERE.twins("worker").is_file()
