"""The list of projects: where they are, which of their commits are known to be slower, and what is
to be measured of them, all of it chosen before anything is measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from rlox_opt.system.schema import Positive, read

LIST = Path(__file__).with_name("projects.toml")
Name = Annotated[str, Meta(pattern=r"^[\w.-]+$")]


class Asv(Struct, frozen=True, forbid_unknown_fields=True):
    """What asv is given of the project's own configuration: the `environment_type` that runs here,
    without the names `left_out` of the matrix, and built by `build_command` where asv's default
    does not build it. `why` says what makes that necessary."""

    environment_type: str
    why: str
    left_out: tuple[str, ...] = ()
    build_command: tuple[str, ...] = ()


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """A commit and one that is known to be slower, measured by the `suite` of another commit or in
    a folder beside the list. `bench` chooses, and `expected` finds what is to be flagged."""

    why: str
    base: str
    head: str
    suite: str
    bench: str
    expected: str
    budget: Positive

    def __post_init__(self) -> None:
        for name in ("bench", "expected"):
            _check_pattern(name, getattr(self, name))


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a suite what `bench` finds: that many `runs` of a budget each; asv has one."""

    bench: str
    budget: Positive
    runs: Annotated[int, Meta(ge=1)]

    def __post_init__(self) -> None:
        _check_pattern("bench", self.bench)


class Unchanged(Struct, frozen=True, forbid_unknown_fields=True):
    """The commit `at`, and the same with one more comment in `file`, by parts of the suite."""

    why: str
    at: str
    file: str
    part: tuple[Part, ...]


class Bisect(Struct, frozen=True, forbid_unknown_fields=True):
    """A range of commits in which `guilty` made one benchmark slower."""

    why: str
    good: str
    bad: str
    suite: str
    bench: str
    guilty: str


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """Commits for a history, with a budget each."""

    why: str
    commits: str
    bench: str
    budget: Positive


class Project(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the list; `uncovered` is what `init` is to tell of its suite, "" for nothing."""

    name: Name
    url: str
    asv: Asv
    pair: Pair
    unchanged: Unchanged
    uncovered: str = ""
    bisect: Bisect | None = None
    record: Record | None = None

    def suite(self, named: str) -> Path | None:
        """The folder beside the list that a suite is, or None for a commit's."""
        folder = LIST.parent / named
        return folder if folder.is_dir() else None


class _File(Struct, forbid_unknown_fields=True):
    project: list[Project]

    def __post_init__(self) -> None:
        if len({one.name for one in self.project}) < len(self.project):
            raise ValueError("two projects share a `name`; give each its own")


def load(path: Path = LIST) -> list[Project]:
    """The projects of the list. Raises NotReadError, naming the key, where it is wrong."""
    return read(path, _File).project


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"`{name}` is {pattern!r}: {error}; write a regular expression") from None
