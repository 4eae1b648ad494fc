"""Commits that are on no branch, made without touching the working tree and the index. The same
content gives the same commit, so that a continued run finds those it made before."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.project.commits import as_usage_error
from rlox_opt.system import git

from asv_bench.injected.regressions import Regression, exchanged
from asv_bench.project import PROJECT

# Changes that slow nothing down: a file, and the form of a line that is appended to it.
INNOCENT = {
    "docs": ("README.md", "<!-- {} -->\n"),
    "python": ("rlox/env/vec_env.py", "# {}\n"),
    "rust": ("crates/rlox-core/src/lib.rs", "// {}\n"),
}


@dataclass(frozen=True)
class History:
    """Commits in order after `good`, the one at `guilty` with a regression, the others innocent."""

    good: str
    commits: tuple[str, ...]
    guilty: str


def idle(base: str, regressions: Iterable[Regression], root: Path = PROJECT.root) -> str:
    """`base` with all regressions in it, none of which does extra work."""
    texts: dict[str, str] = {}
    for regression in regressions:
        text = texts.get(regression.file) or content(base, regression.file, root)
        where = f"{regression.id}, {regression.file}"
        texts[regression.file] = exchanged(text, regression.find, regression.at(0), where)
    return made(base, texts, "Regressions, all idle", root)


def slowed(parent: str, regression: Regression, k: int, root: Path = PROJECT.root) -> str:
    """`parent`, in which no regression does extra work, with extra work in one of them."""
    text = content(parent, regression.file, root)
    text = exchanged(text, regression.at(0), regression.at(k), f"{regression.id} in {parent[:10]}")
    return made(parent, {regression.file: text}, f"{regression.id}, k = {k}", root)


def innocent(parent: str, kind: str, number: int = 1, root: Path = PROJECT.root) -> str:
    """`parent` with one more comment."""
    file, line = INNOCENT[kind]
    text = content(parent, file, root) + line.format(f"Innocent change {number}.")
    return made(parent, {file: text}, f"Innocent change {number} ({kind})", root)


def history(
    good: str, regression: Regression, k: int, n: int, seed: int, root: Path = PROJECT.root
) -> History:
    """`n` commits after `good`, in which no regression does extra work. `seed` chooses the place of
    the slower commit, and what the others change."""
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


def content(commit: str, file: str, root: Path = PROJECT.root) -> str:
    """A file as it is in a commit."""
    with as_usage_error():
        return git.of(root).run("show", f"{commit}:{file}")


def made(parent: str, texts: Mapping[str, str], message: str, root: Path = PROJECT.root) -> str:
    """A commit after `parent` in which these files have these texts."""

    def change(to: git.Repository) -> None:
        for file, text in texts.items():
            mode = to.run("ls-tree", parent, "--", file).split(" ")[0]
            blob = to.run("hash-object", "-w", "--stdin", stdin=text).strip()
            to.run("update-index", "--cacheinfo", f"{mode},{blob},{file}")

    with as_usage_error():
        there = git.of(root)
        ours = dataclasses.replace(there, beside=there.objects)  # where asv looks for it
        return ours.commit(parent, message, "injected", change)
