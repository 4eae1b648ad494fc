"""The builds that differ in their optimisations. Each has a name and cargo features.

`none` has no optimisation on and `all` has all; `p5` is P5 alone and `all-p5` all but P5. A cargo
manifest says which optimisations there are, and which need others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlox_opt.project.builds import Cargo
from rlox_opt.project.project import Project
from rlox_opt.system.files import understood
from rlox_opt.system.schema import read
from rlox_opt.system.usage import UsageError

_FEATURE = re.compile(r"opt-([a-z])([1-9]\d*)")

Build = tuple[str, tuple[str, ...]]  # name, features in the order of the plan


@dataclass
class _Manifest:
    features: dict[str, list[str]]


@dataclass(frozen=True)
class Features:
    """The optimisations' features in a cargo manifest. All methods raise NotReadError if it cannot
    be read, and UsageError if it does not exist."""

    manifest: Path

    def known(self) -> list[str]:
        """The optimisations in which builds differ, `P1` … in order."""
        return [_id(feature) for feature in self._needs]

    def of(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The features that turn on `ids` and what they need: for P3, `opt-p3` and `opt-p12`."""
        wanted = {_feature(id_) for id_ in ids}
        if unknown := sorted(wanted - self._needs.keys()):
            raise UsageError(f"{self.manifest}: has no feature {', '.join(unknown)}")
        while more := {need for feature in wanted for need in self._needs[feature]} - wanted:
            wanted |= more
        return tuple(feature for feature in self._needs if feature in wanted)

    def builds(self, ids: Iterable[str] | None = None) -> list[Build]:
        """The builds that show the effect of `ids`: none, all, each one alone, each one left out.

        Leaving one out also leaves out those that need it. Without `ids`: all builds, 2N + 2.
        """
        chosen = self.known() if ids is None else list(ids)
        alone = [(id_.lower(), self.of([id_])) for id_ in chosen]
        left_out = [(f"all-{id_.lower()}", self._without(id_)) for id_ in chosen]
        return [("none", ()), ("all", self.of(self.known())), *alone, *left_out]

    def _without(self, id_: str) -> tuple[str, ...]:
        return self.of(other for other in self.known() if _feature(id_) not in self.of([other]))

    @cached_property
    def _needs(self) -> dict[str, list[str]]:
        """The features that each optimisation's feature, `opt-p1` …, turns on."""
        if not self.manifest.exists():
            raise UsageError(
                f"{self.manifest}: is not there; builds can only be tested in a checkout of the "
                "sources"
            )
        of = read(self.manifest, _Manifest).features
        with understood(self.manifest, "manifest with features"):
            ours = [match for name in of if (match := _FEATURE.fullmatch(name))]
            in_order = sorted(ours, key=lambda match: (match[1], int(match[2])))
            names = {match[0] for match in ours}  # what else they turn on is cargo's affair
            return {m[0]: [need for need in of[m[0]] if need in names] for m in in_order}


def features(project: Project) -> Features:
    """The features of a project. Raises UsageError if it is not built by cargo."""
    return Features(project.root / cargo_of(project).manifest)


def cargo_of(project: Project) -> Cargo:
    """How cargo builds a project. Raises UsageError if cargo does not build it."""
    if isinstance(project.settings.build, Cargo):
        return project.settings.build
    raise UsageError(f"{project.root}: is not built by cargo, so its builds have no features")


def _feature(id_: str) -> str:
    return f"opt-{id_.lower()}"


def _id(feature: str) -> str:
    return feature.removeprefix("opt-").upper()
