"""Whether a prediction was made before the work that it is about, from git's history."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.system import git, schema
from rlox_opt.system.files import NotReadError
from rlox_opt.system.usage import UsageError

BEFORE, WITH, AFTER = "before the work", "with the work", "after the work"
MEASURED, UNCOMMITTED, NONE = "after it was measured", "not committed", "not predicted"
VERDICTS = (BEFORE, WITH, AFTER, MEASURED, UNCOMMITTED, NONE)


@dataclass(frozen=True)
class Course:
    """The first commits that contain a card's prediction with its present size and interval, the
    optimised form, and a record of it; None where there is none. `verdict` is one of `VERDICTS`."""

    prediction: str | None
    work: str | None
    record: str | None
    verdict: str


def course(project: Project, card: Card) -> Course:
    """The order of a card's prediction, optimised form and record.

    Raises:
        UsageError: the clone is shallow, so the history is incomplete.
        git.GitError: the project is in no checkout, or there is no git.
    """
    of = git.of(project.top)
    if of.run("rev-parse", "--is-shallow-repository").strip() == "true":
        raise UsageError(f"{project.root}: has only a part of its history; git fetch --unshallow")
    held = _predicted(of, project, card) if card.prediction else None
    work, record = _worked(of, project, card), _recorded(of, project, card)
    if card.prediction is None:
        verdict = NONE
    elif held is None:
        verdict = UNCOMMITTED
    elif record and not _before(of, held, record):
        verdict = MEASURED
    elif work and not _before(of, held, work):
        verdict = WITH if held == work else AFTER
    else:
        verdict = BEFORE
    return Course(held, work, record, verdict)


def written(project: Project, card: Card) -> bool:
    """Whether the working tree has the optimised form: a file names the optimisation, and does
    not mark it as unwritten."""
    at, name = _named(project, card)
    paths = map(project.root.joinpath, at)
    texts = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
    if not any(name in text for text in texts):
        return False
    seam, unwritten = project.root / card.seam.address, _unwritten(project, card)
    files = [seam] if seam.is_file() else seam.rglob("*.rs")
    return not any(unwritten and re.search(unwritten, path.read_text("utf-8")) for path in files)


def _named(project: Project, card: Card) -> tuple[tuple[str, ...], str]:
    """The files of which one must name a written optimisation, and that name."""
    name = card.feature if card.in_build else card.id
    return project.settings.twins.switches.get(card.id[0], ()), f'"{name}"'


def _unwritten(project: Project, card: Card) -> str:
    """The text that marks an optimised form as unwritten; "" if the settings have none."""
    return project.settings.twins.unwritten.replace("{id}", card.id)


def _predicted(of: git.Repository, project: Project, card: Card) -> str | None:
    assert card.prediction is not None
    now = dict(card.prediction.size), list(card.prediction.ratio)
    folder = project.within / project.settings.cards
    listed = of.run(
        "log", "--reverse", "--no-renames", "--diff-filter=AM", "--format=%x00%H", "--name-only",
        "--", f":(glob){folder}/{card.stem}_*.toml",
        f":(literal){folder}/{cards.path_of(project, card).name}",
    )  # fmt: skip
    for entry in listed.split("\0")[1:]:
        commit, *paths = entry.split()
        for path in paths:
            try:
                text = of.run("show", f"{commit}:{path}")
                told = schema.parse(text, dict[str, Any], Path(path)).get("prediction", {})
            except NotReadError:
                continue
            if (told.get("size"), told.get("ratio")) == now:
                return commit
    return None


def _worked(of: git.Repository, project: Project, card: Card) -> str | None:
    if unwritten := _unwritten(project, card):
        below = project.within / card.seam.address.partition("/")[0]
        drafts = _log(of, "--pickaxe-regex", f"-S{unwritten}", "--", str(below))
        if drafts:  # a skeleton was added, and removed when the optimised form was written
            return drafts[-1] if len(drafts) > 1 else None
    at, name = _named(project, card)
    if not at:
        return None
    named = _log(of, f"-S{name}", "--", *(str(project.within / path) for path in at))
    return named[0] if named else None


def _recorded(of: git.Repository, project: Project, card: Card) -> str | None:
    name = f":(glob){project.within / project.settings.cards}/record/*/*Z_{card.id.lower()}"
    commits = _log(of, "--diff-filter=A", "--", f"{name}.json", f"{name}-*.json")
    return commits[0] if commits else None


def _log(of: git.Repository, *arguments: str) -> list[str]:
    return of.run("log", "--reverse", "--format=%H", *arguments).split()


def _before(of: git.Repository, one: str, other: str) -> bool:
    return one != other and of.maybe("merge-base", "--is-ancestor", one, other) is not None
