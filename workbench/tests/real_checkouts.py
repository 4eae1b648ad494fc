"""rlox-opt on a user's repository of toy packages, which need no compiler. The checkout that it
builds in is made in the usual way.

As a program, `python real_checkouts.py FOLDER ARGUMENT…` is `rlox-opt ARGUMENT…` in the checkout in
which it is started, like a git hook. A summary of what it did goes into FOLDER/seen.json.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import toy_history
import toy_packages
import users_repository

from rlox_opt.cli.main import main
from rlox_opt.project.builds import Artefact, Builds
from rlox_opt.project.commits import Revision

# Builds both sides, and then finds nothing to measure: its exit code is 2 on the busiest machine.
GATE = ("gate", "HEAD~1", ".", "--bench", "nothing")
UNHARMED = {"code": 2, "built": [10, 12], "changed": []}


def make(folder: Path) -> Path:
    """A user's repository in `folder` with two commits of toys, a third toy that is not committed,
    and benchmarks for them beside it."""
    toy_packages.benchmarks(folder)
    toys = [{"toy.json": json.dumps({"passes": passes})} for passes in (10, 11, 12)]
    toys[0]["pyproject.toml"] = toy_history.TABLE.replace("../cache", "target")
    root = users_repository.make(folder / "repository", toys[:2])
    (root / "toy.json").write_text(toys[2]["toy.json"])
    return root


def patch(folder: Path, root: Path, built: list[int]) -> None:
    """Make rlox-opt work on the checkout `root`, with the benchmarks of `folder`; the passes of
    each toy that it builds are appended to `built`."""
    build = Builds.build

    def noted(self: Builds, revision: Revision, like: Artefact | None = None) -> Artefact:
        built.append(json.loads(self.commits.text(revision.commit, "toy.json"))["passes"])
        return build(self, revision, like)

    Builds.build = noted  # type: ignore[method-assign]
    toy_history.quick(setattr)


def run(folder: Path, root: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """What rlox-opt does in the checkout `root`: its exit code, the toys that it built, and the
    names of the user's files that it changed."""
    built: list[int] = []
    patch(folder, root, built)
    before = users_repository.fingerprint(root)
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    after = users_repository.fingerprint(root)
    changed = sorted(name for name in before | after if before.get(name) != after.get(name))
    return {"code": code, "built": built, "changed": changed}


if __name__ == "__main__":
    seen = run(Path(sys.argv[1]), Path.cwd(), sys.argv[2:])
    (Path(sys.argv[1]) / "seen.json").write_text(json.dumps(seen))
