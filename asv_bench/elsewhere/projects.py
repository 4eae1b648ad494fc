"""The list of projects: where they are, which of their commits are known to be slower, and what is
to be measured of them, all of it chosen before anything is measured."""

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
    """What asv is given of the project's own configuration: the `environment_type` that runs here,
    without the names `left_out` of the matrix, and built by `build_command` where asv's default
    does not build it. `why` says what makes that necessary."""

    environment_type: str
    why: str
    left_out: tuple[str, ...] = ()
    build_command: tuple[str, ...] = ()


class Pytest(Struct, frozen=True, forbid_unknown_fields=True):
    """What pytest-benchmark is given: the `files` of the suite's commit that its run needs, and the
    packages that its environment `requires` beside the project."""

    files: tuple[str, ...]
    requires: tuple[str, ...]


class Criterion(Struct, frozen=True, forbid_unknown_fields=True):
    """What `cargo bench` is given: the `folder` of the crate, and the bench `targets` in it.
    `run_before` is what the project needs to have run in a checkout first; rlox-opt is told so in
    the Cargo.toml of the clone's working tree, which are two lines of configuration."""

    folder: str
    targets: tuple[str, ...]
    run_before: tuple[str, ...] = ()


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """A commit and one that is known to be slower, measured by the `suite` of another commit or in
    a folder beside the list. `bench` chooses, and `expected` finds what is to be flagged.
    `function` finds, as "path:name", what is to be named as the reason: functions that the change,
    or what made it good again, touches; "" where that was not looked up. `reported` is the size in
    the words of `source`, a thread, and `mended` the commit that made it good again. `apart` says
    how the two lie where base is not head's first parent. `blind` is true where no benchmark
    reaches what became slower, as far as was read before."""

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
    """Of a suite what `bench` finds: that many `runs` of a budget each; asv has one."""

    bench: str
    budget: Positive
    runs: Annotated[int, Meta(ge=1)]

    def __post_init__(self) -> None:
        _check_pattern("bench", self.bench)


class Unchanged(Struct, frozen=True, forbid_unknown_fields=True):
    """The commit `at`, and the same with one more comment in `file`, by parts of the suite."""

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
    """Commits for a history, with a budget each."""

    why: str
    commits: str
    bench: str
    budget: Positive


class Project(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the list, with a suite of a `kind`, and what the tool of that kind is given. For
    commits that are older than what runs here, `requires` is added to the environments that are
    compared, `constraints` hold for what builds them too, and `python` is the version in place of
    ours. `first` goes the way from a wheel to the first verdict; `uncovered` is what `init` is to
    tell of its suite, "" for nothing."""

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
        """The variables that tell uv and pip of `constraints`, which are written into `folder`."""
        if not self.constraints:
            return {}
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "constraints.txt"
        path.write_text("".join(f"{of}\n" for of in self.constraints), encoding="utf-8")
        return {"UV_CONSTRAINT": path.as_uri(), "PIP_CONSTRAINT": path.as_uri()}

    def suite(self, named: str) -> Path | None:
        """The folder beside the list that a suite is, or None for a commit's."""
        folder = LIST.parent / named
        return folder if folder.is_dir() else None


class _File(Struct, forbid_unknown_fields=True):
    project: list[Project]
    passed_over: dict[Thread, str] = {}

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
