"""The training runs that a project knows, which its own plug-in describes: `workloads/options.py`.

A project without one has none to name, and profiles its scripts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from rlox_opt.sampling.spec import Spec
from rlox_opt.system import plugins
from rlox_opt.system.machine import ROOT

FILE = Path("workloads", "options.py")


class Workloads(Protocol):
    """What the plug-in brings."""

    NAMES: Sequence[str]

    def add_training(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a run, beside its name."""

    def add_switches(self, parser: argparse.ArgumentParser, does: str) -> None:
        """Add those that turn optimisations on or off: `does` says what is done with them."""

    def spec_of(self, arguments: argparse.Namespace) -> Spec:
        """The run that the arguments ask for. Raises UsageError where they do not fit each other,
        the environment or the machine."""

    def reference(self, name: str) -> Spec:
        """The run of that name with nothing else said. Raises UsageError."""


def known(root: Path = ROOT) -> Workloads | None:
    """The plug-in of the project in `root`; None where it has none."""
    path = root / FILE
    if not path.exists():
        return None
    return cast(Workloads, plugins.load(path))


def names() -> tuple[str, ...]:
    """Of the runs; () where there are none."""
    of = known()
    return tuple(of.NAMES) if of else ()


def reference(name: str) -> Spec:
    """The run of that name with nothing else said. Raises UsageError; KeyError without any."""
    of = known()
    if of is None:
        raise KeyError(name)
    return of.reference(name)
