"""Which commits have no recording, which of those need one because they change what is measured,
and which are being recorded now."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.system.usage import UsageError


@dataclass(frozen=True)
class Unrecorded:
    """Of the `commits` from the first recorded one on: how many are `without` a recording, and how
    many of those changed what is measured. `ahead` are those among them that come after the
    `newest` recorded one, the oldest first."""

    commits: int
    without: int
    needing: int
    newest: str
    ahead: tuple[str, ...]

    def __str__(self) -> str:
        newest = self.newest[:10]
        said = (
            f"{self.without} of the {self.commits} commits since the first recording have none; "
            f"{self.needing} of them change what is measured, {len(self.ahead)} after {newest}"
        )
        return f"{said}: `rlox-opt record {newest}..HEAD`" if self.ahead else said


def changing(project: Project, tip: str = "HEAD") -> set[str]:
    """The commits on a commit's line of first parents that change what is measured. Raises
    UsageError where the project names paths that git does not take."""
    try:
        return set(project.commits.line(tip, *project.measured))
    except UsageError as error:
        raise UsageError(f"measured = {list(project.measured)}: {error}") from None


def of(project: Project, recorded: Collection[str], line: Sequence[str]) -> Unrecorded | None:
    """The missing recordings of a line of commits, the oldest first; None without any recording."""
    there = [number for number, commit in enumerate(line) if commit in recorded]
    if not there:
        return None
    without = [n for n in range(there[0], len(line)) if line[n] not in recorded]
    changes = changing(project, line[-1])
    needing = [n for n in without if line[n] in changes]
    ahead = tuple(line[n] for n in needing if n > there[-1])
    commits = len(line) - there[0]
    return Unrecorded(commits, len(without), len(needing), line[there[-1]], ahead)


@contextlib.contextmanager
def alone(project: Project, revision: Revision) -> Iterator[bool]:
    """Whether this process has the revision to itself, until the block ends. The system releases
    the lock of a killed process."""
    from filelock import FileLock, Timeout

    digest = hashlib.sha256(f"{revision.commit} {revision.features}".encode()).hexdigest()
    folder = project.revisions / "recording"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(FileLock(folder / f"{digest[:12]}.lock", blocking=False))
        except Timeout:
            yield False
        else:
            yield True
