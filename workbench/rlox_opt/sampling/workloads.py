"""The training runs that a project offers. The project's own plug-in describes them: `options.py`
in its folder of workloads.

A project without this plug-in has no training runs, and only its scripts are profiled.
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
    """What the plug-in provides."""

    NAMES: Sequence[str]
    JOBS: Mapping[str, Mapping[str, Any]]  # short runs that show what an optimisation gains
    SEVERAL: Mapping[str, str]  # options that spread a run over several processes: their names
    EXAMPLES: str  # examples for the --help of `rlox-opt profile train`

    def add_training(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a run other than its name."""

    def add_switches(self, parser: argparse.ArgumentParser, does: str) -> None:
        """Add the options that turn optimisations on or off; `does` says what is done with them."""

    def add_several(self, add: Callable[..., Any]) -> None:
        """Add the options `SEVERAL` by `add`, an `add_argument`; without the option, each is
        None."""

    def command(
        self, arguments: argparse.Namespace, spec: Spec, path: Path, *, serial: bool = False
    ) -> list[str]:
        """The command that trains as the spec, which is saved in `path`, and `SEVERAL` say; if
        `serial`, in one process. Raises UsageError if options contradict each other."""

    def spec_of(self, project: Project, arguments: argparse.Namespace) -> Spec:
        """The run that the arguments describe. Raises UsageError if they contradict each other or
        do not fit the environment or the machine."""

    def reference(self, project: Project, name: str) -> Spec:
        """The run of that name with all options at their defaults. Raises UsageError."""


def known(project: Project) -> Workloads | None:
    """The plug-in of a project; None where it has none."""
    path = project.workloads / "options.py"
    if not path.exists():
        return None
    return cast(Workloads, plugins.load(path))


def names(project: Project) -> tuple[str, ...]:
    """The names of the runs; () without a plug-in."""
    of = known(project)
    return tuple(of.NAMES) if of else ()


def reference(project: Project, name: str) -> Spec:
    """The run of that name with default options. Raises UsageError; KeyError without a plug-in."""
    of = known(project)
    if of is None:
        raise KeyError(name)
    return of.reference(project, name)
