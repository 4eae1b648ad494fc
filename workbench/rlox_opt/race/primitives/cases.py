"""The operations that are timed, their sizes, and the engines, from peers/primitives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from msgspec import Struct

from rlox_opt.project.project import Project
from rlox_opt.race.environments import Peer, lock_of
from rlox_opt.system import plugins
from rlox_opt.system.files import understood
from rlox_opt.system.schema import read
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Size = Mapping[str, int | str]
Answer: TypeAlias = "Mapping[str, NDArray[Any]]"  # one call's results, by name


class WrongError(Exception):
    """An engine's result is wrong; the message says by how much."""


class Checks(Protocol):
    """What the project's plug-in `checks.py`, beside its engines, provides."""

    def check(self, case: Case, answer: Answer) -> None:
        """Raises WrongError if the answer is wrong."""


def folder(project: Project) -> Path:
    """Where the engines' modules lie."""
    return project.peers / "primitives"


def checks(folder: Path) -> Checks:
    """The plug-in in a folder of engines."""
    return cast(Checks, plugins.load(folder / "checks.py"))


@dataclass(frozen=True)
class Case:
    """A family at one size."""

    family: str
    size: Size

    @property
    def key(self) -> str:
        """The case's name in arguments and records: "sample/batch=256,obs_dim=4"."""
        size = ",".join(f"{name}={value}" for name, value in self.size.items())
        return f"{self.family}/{size}" if size else self.family

    @property
    def title(self) -> str:
        """The size for readers: "batch 256, obs_dim 4"."""
        shown = (
            f"{name} {value:,}" if isinstance(value, int) else value
            for name, value in self.size.items()
        )
        return ", ".join(shown)


class Growth(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}
):
    """The sizes over which a family's cost is followed. `axis` goes from `first` to `last`, the
    other sizes stay. A call reads and writes `touched` bytes for each unit of the axis."""

    axis: str
    first: int
    last: int
    touched: int
    fixed: Size = {}


class Family(Struct, frozen=True, forbid_unknown_fields=True, rename={"sizes": "cases"}):
    """One operation and the sizes of its cases. `pictures` are drawn along an axis: {"axis",
    "label", "where"}. `p99` says that calls are also timed one by one."""

    name: str
    what: str
    sizes: tuple[Size, ...]
    pictures: tuple[Mapping[str, Any], ...] = ()
    p99: bool = False
    growth: Growth | None = None

    @property
    def cases(self) -> list[Case]:
        """A case for each size."""
        return [Case(self.name, size) for size in self.sizes]


class _List(Struct, forbid_unknown_fields=True):
    engine: list[dict[str, Any]]
    family: list[Family]


@dataclass(frozen=True)
class Engine:
    """An implementation of primitives: a module of peers/primitives in one of its forms, in an
    environment.

    The others are compared with those marked `ours`. A `control` runs in any environment. `package`
    is the distribution whose version is reported; without one, the environment's first."""

    name: str
    what: str
    module: str
    form: str
    ours: bool
    control: bool
    package: str
    peer: Peer


def load(project: Project, name: str = "primitives.toml") -> tuple[list[Family], list[Engine]]:
    """The families and engines of a file, in its order. Raises NotReadError."""
    path = folder(project) / name
    if not path.exists():
        raise UsageError(f"{path} would name operations and their engines, and is not there")
    listed = read(path, _List)
    with understood(path, "list of operations"):
        return listed.family, [_engine(project, row) for row in listed.engine]


def _engine(project: Project, row: Mapping[str, Any]) -> Engine:
    module, form = row["module"], row.get("form", "")
    driver = folder(project) / f"{module}.py"
    peer = Peer(row["name"], row["what"], driver, form, lock_of(project, row))
    return Engine(
        row["name"],
        row["what"],
        module,
        form,
        row.get("ours", False),
        row.get("control", False),
        row.get("package", ""),
        peer,
    )


def digest(project: Project) -> str:
    """A digest of all that decides what is timed, except for this checkout's library."""
    own = [path for kind in ("py", "c", "toml") for path in folder(project).glob(f"*.{kind}")]
    hashed = hashlib.sha256()
    for path in [*sorted(own), *sorted((project.peers / "locks").glob("*.lock"))]:
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:12]
