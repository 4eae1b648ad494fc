"""Projects for tests: a toy in Rust and Python, and folders that are said to be one."""

import re
from pathlib import Path
from typing import Any

from rlox_opt.project.project import Project, Settings
from rlox_opt.project.suites import Suite, Suites
from rlox_opt.sampling.layers import Classifier

PROJECT = Project.find(Path(__file__).parent / "toy_project")
CLASSIFIER = Classifier(PROJECT.settings.layers)


def of(root: Path, like: Project = PROJECT, **settings: Any) -> Project:
    """A project in a folder, of another's package and build unless said otherwise."""
    same: dict[str, Any] = {"package": like.package, "suite": "benchmarks"}
    same |= {"build": like.settings.build, "twins": like.settings.twins}
    same |= {"layers": like.settings.layers}
    return Project(root, Settings(**{**same, **settings}))


def write(root: Path, table: str = 'package = "toy"') -> Path:
    """A folder that the command line, started in it, takes for a project; returns it."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text(f"[tool.rlox-opt]\n{table}\n")
    return root


def described(root: Path, like: Project = PROJECT, **instead: str) -> Path:
    """A folder that is described as another project is, but for some settings; returns it."""
    theirs = (like.root / "pyproject.toml").read_text()
    table = theirs[theirs.index("[tool.rlox-opt]") :].partition("[tool.maturin]")[0]
    for name, value in instead.items():
        table, _ = re.subn(rf"^{name} = .*\n", "", table, flags=re.MULTILINE)
        table = table.replace("\n", f'\n{name} = "{value}"\n', 1)
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text(table)
    return root


def by_its_own(project: Project, *_: object) -> tuple[Project, Suite]:
    """In place of `measured_by`, where commits are made up: by the suite of the working tree."""
    return project, Suites(project).here()
