"""The training runs that a project knows, which its own plug-in describes: `options.py` in its
folder of workloads.

A project without one has none to name, and profiles its scripts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from rlox_opt.project.project import Project
from rlox_opt.sampling.spec import Spec
from rlox_opt.system import plugins


class Workloads(Protocol):
    """What the plug-in brings."""

    NAMES: Sequence[str]
    JOBS: Mapping[str, Mapping[str, Any]]  # short runs that tell what an optimisation is worth
    SEVERAL: Mapping[str, str]  # options that spread a run over several processes: their names
    EXAMPLES: str  # of `rlox-opt profile train`, for its --help

    def add_training(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a run, beside its name."""

    def add_switches(self, parser: argparse.ArgumentParser, does: str) -> None:
        """Add those that turn optimisations on or off: `does` says what is done with them."""

    def add_several(self, add: Callable[..., Any]) -> None:
        """Add the options `SEVERAL` by `add`, an `add_argument`; unasked each is None."""

    def command(
        self, arguments: argparse.Namespace, spec: Spec, path: Path, *, serial: bool = False
    ) -> list[str]:
        """What trains as the spec, saved in `path`, and `SEVERAL` say; if `serial`, the same in one
        process. Raises UsageError where they do not fit each other."""

    def spec_of(self, project: Project, arguments: argparse.Namespace) -> Spec:
        """The run that the arguments ask for. Raises UsageError where they do not fit each other,
        the environment or the machine."""

    def reference(self, project: Project, name: str) -> Spec:
        """The run of that name with nothing else said. Raises UsageError."""


def known(project: Project) -> Workloads | None:
    """The plug-in of a project; None where it has none."""
    path = project.workloads / "options.py"
    if not path.exists():
        return None
    return cast(Workloads, plugins.load(path))


def names(project: Project) -> tuple[str, ...]:
    """Of the runs; () where there are none."""
    of = known(project)
    return tuple(of.NAMES) if of else ()


def reference(project: Project, name: str) -> Spec:
    """The run of that name with nothing else said. Raises UsageError; KeyError without any."""
    of = known(project)
    if of is None:
        raise KeyError(name)
    return of.reference(project, name)
