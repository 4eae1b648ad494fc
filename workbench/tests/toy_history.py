"""A repository whose commits are toy packages, and rlox-opt over it: builds need no compiler.

As a program, `python toy_history.py FOLDER ARGUMENT…` is `rlox-opt ARGUMENT…` over the history in
FOLDER.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import toy_packages

from rlox_opt.cli import why
from rlox_opt.cli.main import main
from rlox_opt.harness import packages
from rlox_opt.history import recording, store
from rlox_opt.history.store import Entry
from rlox_opt.project import side_by_side
from rlox_opt.project.project import Project

_COMMAND = json.dumps([sys.executable, toy_packages.__file__, "{out}"])
TABLE = f"""
[tool.rlox-opt]
package = "toy"
suite = "../benchmarks"
measured = ["toy.json"]
state = ".."
cache = "../cache"
build = {{ by = "command", command = {_COMMAND} }}
"""
STAGES = ("time", "memory")  # what toys have
# `record` then has one restart and no second stage, and `diff` one restart of one benchmark.
SPENT = ("--budget", "1e-09")
Make = Callable[..., list[str]]  # what makes a history


def commits(folder: Path, settings: list[dict[str, Any]]) -> list[str]:
    """Make the repository, a commit for each settings of a toy package; returns them in order. One
    whose settings are {"notes": …} alone changes no package."""
    repository = folder / "repository"
    repository.mkdir(parents=True)
    toy_packages.benchmarks(folder)
    (repository / "pyproject.toml").write_text(TABLE)
    _git(repository, "init", "--quiet", "--initial-branch=main")
    found = []
    for number, of in enumerate(settings):
        name = "notes.json" if of.keys() == {"notes"} else "toy.json"
        (repository / name).write_text(json.dumps({"number": number, **of}))
        _git(repository, "add", "--all")
        _git(repository, "commit", "--quiet", "-m", f"number {number}")
        found.append(_git(repository, "rev-parse", "HEAD").strip())
    return found


def entries(folder: Path) -> list[Entry]:
    """The recordings of the history in `folder`."""
    return [entry for _, entry in store.entries(folder / "history")]


def project(folder: Path) -> Project:
    """The history in `folder`, as a project."""
    return Project.find(folder / "repository")


def patch(folder: Path, chdir: Any, set_: Any) -> None:
    """Have rlox-opt work on the history in `folder`; `chdir` and `set_` are `os.chdir` and
    `setattr`, or a test's own."""
    chdir(folder / "repository")
    quick(set_)


def quick(set_: Any) -> None:
    """Have comparisons of toys take little time."""
    set_(side_by_side, "_PATIENCE_S", 60.0)
    set_(packages, "_CONTEST_S", 0.01)
    set_(packages, "_CONTESTS", 1)
    set_(recording, "MORE", 0)
    set_(why, "MOST", 0)
    set_(why, "_MOST_S", 0.0)
    set_(recording, "STAGES", STAGES)
    set_(recording.Recording, "_find_causes", lambda self: None)


TIMES, CAUSES = recording.Recording._time, recording.Recording._find_causes


def interrupted(self: recording.Recording) -> None:
    """In place of `Recording._time`: Ctrl-C comes when times are measured."""
    TIMES(self)
    raise KeyboardInterrupt


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    patch(Path(sys.argv[1]), os.chdir, setattr)
    sys.exit(main(sys.argv[2:]))
