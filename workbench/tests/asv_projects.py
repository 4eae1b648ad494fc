"""Small projects with an asv suite, in repositories of their own."""

import json
from collections.abc import Mapping
from pathlib import Path

from users_repository import git

BUILD = '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n'
PYPROJECT = f'{BUILD}\n[project]\nname = "my-thing"\nversion = "1"\n'
SUITE = "import my_thing\n\n\nclass Work:\n    def time_work(self):\n        my_thing.work()\n"


def conf(**keys: object) -> str:
    """An asv.conf.json."""
    return json.dumps({"version": 1, **keys})


FILES: Mapping[str, str] = {
    "pyproject.toml": PYPROJECT,
    "my_thing.py": "def work():\n    return 1\n",
    "benchmarks/asv.conf.json": conf(repo="..", matrix={"numpy": []}, pythons=["3.11"]),
    "benchmarks/benchmarks/__init__.py": "",
    "benchmarks/benchmarks/all.py": SUITE,
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Files with these texts in a folder, which is made."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def commit(folder: Path, files: Mapping[str, str] = {}) -> str:
    """A commit of files, and of all that lies there; returns its hash."""
    write(folder, files)
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "a commit")
    return git(folder, "rev-parse", "HEAD")


def make(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    """A repository whose one commit has these files."""
    folder.mkdir(parents=True, exist_ok=True)
    commit(folder, files)
    return folder
