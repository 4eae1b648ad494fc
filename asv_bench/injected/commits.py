"""Commits that no branch knows, made beside the working tree and the index: the same content is the
same commit, so that a run that goes on finds what it made before."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from asv_bench.injected.regressions import Regression, exchanged
from rlox.opt.arguments import UsageError
from rlox.profiling.machine import ROOT

# Changes that slow nothing down: a file, and what a line that is added to its end looks like.
INNOCENT = {
    "docs": ("README.md", "<!-- {} -->\n"),
    "python": ("rlox/env/vec_env.py", "# {}\n"),
    "rust": ("crates/rlox-core/src/lib.rs", "// {}\n"),
}
_MAKER = {
    **{f"GIT_{who}_NAME": "injected" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "injected@localhost" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}


@dataclass(frozen=True)
class History:
    """Commits in order after `good`, the one at `guilty` with a regression, the others innocent."""

    good: str
    commits: tuple[str, ...]
    guilty: str


def idle(base: str, regressions: Iterable[Regression], root: Path = ROOT) -> str:
    """`base` with every regression in it, and none at work."""
    texts: dict[str, str] = {}
    for regression in regressions:
        text = texts.get(regression.file) or content(base, regression.file, root)
        where = f"{regression.id}, {regression.file}"
        texts[regression.file] = exchanged(text, regression.find, regression.at(0), where)
    return made(base, texts, "Regressions, all idle", root)


def slowed(parent: str, regression: Regression, k: int, root: Path = ROOT) -> str:
    """`parent`, where all are idle, with one at work."""
    text = content(parent, regression.file, root)
    text = exchanged(text, regression.at(0), regression.at(k), f"{regression.id} in {parent[:10]}")
    return made(parent, {regression.file: text}, f"{regression.id}, k = {k}", root)


def innocent(parent: str, kind: str, number: int = 1, root: Path = ROOT) -> str:
    """`parent` with one more comment."""
    file, line = INNOCENT[kind]
    text = content(parent, file, root) + line.format(f"Innocent change {number}.")
    return made(parent, {file: text}, f"Innocent change {number} ({kind})", root)


def history(
    good: str, regression: Regression, k: int, n: int, seed: int, root: Path = ROOT
) -> History:
    """`n` commits after `good`, where all regressions are idle; `seed` draws the place of the one
    that slows, and what the others change."""
    rng = random.Random(seed)
    at = rng.randrange(n)
    commits: list[str] = []
    parent = good
    for number in range(n):
        if number == at:
            parent = slowed(parent, regression, k, root)
        else:
            parent = innocent(parent, rng.choice([*INNOCENT]), number, root)
        commits.append(parent)
    return History(good, tuple(commits), commits[at])


def content(commit: str, file: str, root: Path = ROOT) -> str:
    """A file as it is in a commit."""
    return _git("show", f"{commit}:{file}", root=root)


def made(parent: str, texts: Mapping[str, str], message: str, root: Path = ROOT) -> str:
    """A commit after `parent` in which these files have these texts."""
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git("read-tree", parent, root=root, env=index)
        for file, text in texts.items():
            blob = _git("hash-object", "-w", "--stdin", root=root, stdin=text).strip()
            entry = f"{_mode(parent, file, root)},{blob},{file}"
            _git("update-index", "--cacheinfo", entry, root=root, env=index)
        tree = _git("write-tree", root=root, env=index).strip()
    commit = _git("commit-tree", tree, "-p", parent, "-m", message, root=root, env=_MAKER)
    return commit.strip()


def _mode(commit: str, file: str, root: Path) -> str:
    return _git("ls-tree", commit, "--", file, root=root).split(" ")[0]


def _git(
    *arguments: str, root: Path, env: Mapping[str, str] | None = None, stdin: str | None = None
) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env={**os.environ, **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise UsageError(f"git {' '.join(arguments[:2])} failed: {done.stderr.strip()}")
    return done.stdout
