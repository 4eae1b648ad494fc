"""What differs between kinds of suites: how one is found, what its source tells, and how its sides
run it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from rlox_opt.harness.arms import Suite
from rlox_opt.project.asv_configuration import Configuration


class Kind(Protocol):
    """A kind of suite. `top` is the top of a checkout; paths within are from there. A suite is a
    folder or a file: `top / configuration.suite`."""

    name: str
    """As `Configuration.kind` has it."""

    called: str
    """Of what it is, for people: "a folder of asv benchmarks"."""

    found_by: str
    """What it is found by where nothing names it, for people."""

    none: str
    """What makes a suite have no benchmark, for people."""

    together: bool
    """Whether one process may have several sides."""

    def there(
        self, top: Path, root: PurePosixPath, listed: Sequence[str] | None
    ) -> list[PurePosixPath]:
        """The suites of this kind that the project in `root` has; of the files `listed`, if
        given."""

    def takes(self, top: Path, path: PurePosixPath) -> bool:
        """Whether a file or folder is a suite of this kind. One that is not there is none."""

    def suite(self, top: Path, root: PurePosixPath, path: PurePosixPath) -> Configuration:
        """What is known of the suite in `path`, which is of the project in `root`: its `kind` and
        `path`, what it requires, and notes on that. Raises UsageError."""

    def benchmarks(self, suite: Path) -> list[str]:
        """The names that its source tells, as `--bench` finds them; without importing it."""

    def any_benchmark(self, suite: Path) -> bool:
        """Whether it may have a benchmark at all."""

    def uncovered(self, suite: Path) -> list[str]:
        """What looks like a benchmark and is never run, a sentence each."""

    def lightest(self, suite: Path, names: Sequence[str]) -> str:
        """Of benchmarks, one or more, one that costs least to try."""

    def laid_out(
        self, suite: Path, of: Configuration, shared: Sequence[str], folder: Path
    ) -> Suite:
        """What the sides run: the program of this kind in `harness/inside`, and what it is told.
        Files that a run may change are copied into the scratch `folder` first."""
