"""The project that these programs belong to."""

from pathlib import Path

from rlox_opt.project.project import Project

PROJECT = Project.find(Path(__file__).resolve().parent)
