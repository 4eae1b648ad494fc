"""The list of projects: where they are, which of their commits are known to be slower, and what is
measured. All of it was chosen before the first measurement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from rlox_opt.system.schema import Positive, read

LIST = Path(__file__).with_name("projects.toml")
Name = Annotated[str, Meta(pattern=r"^[\w.-]+$")]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{10,40}$")]
Mended = Annotated[str, Meta(pattern=r"^([0-9a-f]{10,40})?$")]
Thread = Annotated[str, Meta(pattern=r"^[\w.-]+#\d+$")]


class Asv(Struct, frozen=True, forbid_unknown_fields=True):
    """asv's settings for the project: the `environment_type` that works here, names `left_out` of
    the matrix, and the `build_command` if asv's default does not build it. `why` says why these are
    necessary."""

    environment_type: str
    why: str
    left_out: tuple[str, ...] = ()
    build_command: tuple[str, ...] = ()


class Pytest(Struct, frozen=True, forbid_unknown_fields=True):
    """pytest-benchmark's settings: the `files` of the suite's commit that it needs, and the
    packages that its environment `requires` beside the project."""

    files: tuple[str, ...]
    requires: tuple[str, ...]


class Criterion(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of `cargo bench`: the `folder` of the crate, and its bench `targets`. `run_before`
    is a command that must run in a checkout first. rlox-opt gets it as two lines in the Cargo.toml
    of the clone's working tree."""

    folder: str
    targets: tuple[str, ...]
    run_before: tuple[str, ...] = ()


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """A commit, and another one that is known to be slower, measured by the `suite` of a third
    commit or of a folder beside the list. `bench` selects benchmarks, and `expected` matches those
    that should be flagged. `function` matches, as "path:name", the functions that should be named
    as the reason: those that the change, or its correction, touches; "" if they were not looked up.
    `reported` is the size in the words of `source`, a discussion; `mended` is the commit that
    corrected it. `apart` describes the distance if base is not head's first parent. `blind` is true
    if no benchmark was known to reach the slower code."""

    why: str
    base: Hash
    head: Hash
    suite: str
    bench: str
    expected: str
    budget: Positive
    reported: str
    source: Thread
    mended: Mended = ""
    apart: str = ""
    blind: bool = False
    function: str = ""

    def __post_init__(self) -> None:
        for name in ("bench", "expected", "function"):
            _check_pattern(name, getattr(self, name))


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """The benchmarks that `bench` matches, with this number of `runs` of one budget each; asv has
    one run."""

    bench: str
    budget: Positive
    runs: Annotated[int, Meta(ge=1)]

    def __post_init__(self) -> None:
        _check_pattern("bench", self.bench)


class Unchanged(Struct, frozen=True, forbid_unknown_fields=True):
    """The commit `at`, and the same commit with one more comment in `file`, by parts of the
    suite."""

    why: str
    at: Hash
    file: str
    part: tuple[Part, ...]


class Bisect(Struct, frozen=True, forbid_unknown_fields=True):
    """A range of commits in which `guilty` made one benchmark slower."""

    why: str
    good: Hash
    bad: Hash
    suite: str
    bench: str
    guilty: Hash


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """Commits to record for a history, with a budget each."""

    why: str
    commits: str
    bench: str
    budget: Positive


class Project(Struct, frozen=True, forbid_unknown_fields=True):
    """A project of the list, with a suite of a `kind`, and the settings of that kind's usual tool.
    Commits may be older than the packages of today: `requires` is then added to the compared
    environments, `constraints` also apply to what builds them, and `python` replaces the default
    version. `first` measures the way from a wheel to the first verdict. `uncovered` is what `init`
    should say about its suite, "" for nothing."""

    name: Name
    url: str
    kind: Literal["asv", "pytest-benchmark", "criterion"]
    pair: tuple[Pair, ...]
    unchanged: Unchanged
    asv: Asv | None = None
    pytest: Pytest | None = None
    criterion: Criterion | None = None
    requires: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    python: str = ""
    first: bool = False
    uncovered: str = ""
    bisect: Bisect | None = None
    record: Record | None = None

    def __post_init__(self) -> None:
        given = {"asv": self.asv, "pytest-benchmark": self.pytest, "criterion": self.criterion}
        if given[self.kind] is None:
            table = self.kind.partition("-")[0]
            raise ValueError(f"{self.name}: `kind` is {self.kind!r}; add [project.{table}]")

    def env(self, folder: Path) -> dict[str, str]:
        """The variables that pass `constraints`, a file in `folder`, to uv and pip."""
        if not self.constraints:
            return {}
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "constraints.txt"
        path.write_text("".join(f"{of}\n" for of in self.constraints), encoding="utf-8")
        return {"UV_CONSTRAINT": path.as_uri(), "PIP_CONSTRAINT": path.as_uri()}

    def suite(self, named: str) -> Path | None:
        """The suite's folder beside the list; None for the suite of a commit."""
        folder = LIST.parent / named
        return folder if folder.is_dir() else None


class _File(Struct, forbid_unknown_fields=True):
    project: list[Project]
    passed_over: dict[Thread, str] = {}

    def __post_init__(self) -> None:
        if len({one.name for one in self.project}) < len(self.project):
            raise ValueError("two projects share a `name`; give each its own")


def load(path: Path = LIST) -> list[Project]:
    """The projects of the list. Raises NotReadError, which names the key."""
    return read(path, _File).project


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"`{name}` is {pattern!r}: {error}; write a regular expression") from None
