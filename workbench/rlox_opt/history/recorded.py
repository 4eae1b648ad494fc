"""What the history of this machine holds already, and the control of its next recording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.history import store
from rlox_opt.history.store import Entry
from rlox_opt.project.builds import Artefact, NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import side_by_side
from rlox_opt.system.machine import machine, slug
from rlox_opt.system.usage import UsageError

SHIPPED = ("shipped",)
_ANCESTORS = 50  # among which the entry before is looked for
_ANOTHER = "--control REV begins a new series"


def home(project: Project) -> Path:
    """The folder of this machine's recordings."""
    return project.history / slug(machine())


def entries(
    project: Project, commit: str, features: tuple[str, ...] | None, control: dict[str, Any]
) -> Iterator[Entry]:
    """Of a commit on this machine, oldest first. Raises NotReadError."""
    asked = SHIPPED if features is None else features
    for entry in store.of_commit(commit, home(project)):
        if entry.features == asked and dict(entry.control) == control:
            yield entry


def hold(recorded: Sequence[Entry], bench: re.Pattern[str] | None, whole: bool) -> bool:
    """Whether one of these entries has all numbers that are asked for, as far as they could be
    measured. `whole` says whether complete entries have every benchmark: the project leaves none
    out."""

    def holds(entry: Entry) -> bool:
        if bench is None:
            return entry.complete and bool(entry.cells)
        if entry.stopped or not ((entry.complete and whole) or entry.asked == bench.pattern):
            return False
        return any(bench.search(cell.benchmark) for cell in entry.cells)

    return any(map(holds, recorded))


def before(project: Project, revision: Revision, entry: Entry) -> Entry | None:
    """The entry of the nearest ancestor that has one with the same features and control."""
    for commit in project.commits.ancestors(revision.commit, _ANCESTORS):
        whole = [
            other
            for other in entries(project, commit, revision.features, dict(entry.control))
            if other.complete and other.cells
        ]
        if whole:
            return whole[-1]
    return None


def named(control: Artefact) -> dict[str, Any]:
    """A control as entries name it."""
    return {"commit": control.revision.commit, "features": list(control.features)}


def choose_control(project: Project, asked: Sequence[Revision], given: str | None) -> Artefact:
    """What is given, or what the newest entry of this machine has, or the first commit that builds
    and whose benchmarks can be read.

    Raises:
        NotBuiltError: it does not build.
        UsageError: there is no such commit, or none of its benchmarks can be read.
    """
    if given:
        return _readable(project, project.builds.build(project.commits.resolve(given)))
    if newest := store.last(home(project)):
        return _readable(project, _of_newest(project, newest))
    why = ""
    for revision in asked:
        try:
            return _readable(project, project.builds.build(revision))
        except (NotBuiltError, UsageError) as error:
            why = str(error)
    raise NotBuiltError(f"none of the commits can be the control, the last: {why}")


def _of_newest(project: Project, newest: Entry) -> Artefact:
    """The build of the control of the newest entry. Raises as `choose_control` does."""
    commit, features = newest.control["commit"], tuple(newest.control["features"])
    control = f"the control {commit[:10]} of the newest recording"
    if project.commits.tree(commit) is None:
        raise UsageError(f"{control} is not in this clone{project.commits.unshallow()}; {_ANOTHER}")
    try:
        return project.builds.build(Revision(commit, commit, features))
    except NotBuiltError as error:
        raise NotBuiltError(f"{control} does not build any more; {_ANOTHER}: {error}") from None


def _readable(project: Project, control: Artefact) -> Artefact:
    with side_by_side(project, control, control, again=False) as packages:
        packages.sides = {"head": packages.sides["head"]}  # both are the same
        listed = packages.listed()["head"]
    if listed.broken and not listed.benchmarks:
        where, why = next(iter(listed.broken.items()))
        raise UsageError(
            f"{control.revision.title}: cannot be the control, since no benchmark can be read: "
            f"{where}: {why}; --control chooses another"
        )
    return control
