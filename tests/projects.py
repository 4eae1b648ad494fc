"""Projects for tests: this repository, and folders that are said to be one."""

import re
from pathlib import Path
from typing import Any

from rlox_opt.project.project import Project, Settings
from rlox_opt.sampling.layers import Classifier

HERE = Project.find(Path(__file__).parent)
ROOT = HERE.root
CLASSIFIER = Classifier(HERE.settings.layers)


def of(root: Path, **settings: Any) -> Project:
    """A project in a folder, of this repository's package and build unless said otherwise."""
    ours: dict[str, Any] = {"package": "rlox", "suite": "benchmarks"}
    ours |= {"build": HERE.settings.build, "twins": HERE.settings.twins}
    ours |= {"layers": HERE.settings.layers}
    return Project(root, Settings(**{**ours, **settings}))


def write(root: Path, table: str = 'package = "rlox"') -> Path:
    """A folder that the command line, started in it, takes for a project; returns it."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text(f"[tool.rlox-opt]\n{table}\n")
    return root


def described(root: Path, **instead: str) -> Path:
    """A folder that is described as this repository is, but for some settings; returns it."""
    ours = (ROOT / "pyproject.toml").read_text()
    table = ours[ours.index("[tool.rlox-opt]") : ours.index("[tool.maturin]")]
    for name, value in instead.items():
        table, _ = re.subn(rf"^{name} = .*\n", "", table, flags=re.MULTILINE)
        table = table.replace("\n", f'\n{name} = "{value}"\n', 1)
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text(table)
    return root
