"""This repository as the workbench's project, and folders that look like such a project."""

from functools import partial
from pathlib import Path

import toy_projects
from rlox_opt.project.project import Project
from rlox_opt.sampling.layers import Classifier

HERE = Project.find(Path(__file__).parent)
ROOT = HERE.root
CLASSIFIER = Classifier(HERE.settings.layers)
of = partial(toy_projects.of, like=HERE)
described = partial(toy_projects.described, like=HERE)


def write(root: Path, table: str = 'package = "rlox"') -> Path:
    """A folder that the command line, if it is started there, takes for a project; returns it."""
    return toy_projects.write(root, table)
