"""What differs between kinds of suites: how a suite is found, what its source shows, and how its
sides are run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from rlox_opt.harness.side_processes import Suite
from rlox_opt.project.asv_configuration import Configuration


class Kind(Protocol):
    """A kind of suite. `top` is the top of a checkout, and paths are relative to it. A suite is a
    folder or a file: `top / configuration.suite`."""

    name: str
    """The name, as in `Configuration.kind`."""

    called: str
    """The name for messages: "a folder of asv benchmarks"."""

    found_by: str
    """How such a suite is found if nothing names it, for messages."""

    none: str
    """What a suite without benchmarks lacks, for messages."""

    together: bool
    """Whether several sides may run in one process."""

    def there(
        self, top: Path, root: PurePosixPath, listed: Sequence[str] | None
    ) -> list[PurePosixPath]:
        """The suites of this kind that the project in `root` has, among the files `listed` if
        given."""

    def takes(self, top: Path, path: PurePosixPath) -> bool:
        """Whether a file or folder is a suite of this kind; False if it does not exist."""

    def suite(self, top: Path, root: PurePosixPath, path: PurePosixPath) -> Configuration:
        """What is known of the suite in `path` of the project in `root`: its `kind` and `path`,
        what it requires, and notes on that. Raises UsageError."""

    def benchmarks(self, suite: Path) -> list[str]:
        """The benchmarks' names as its source shows them, for `--bench`; nothing is imported."""

    def any_benchmark(self, suite: Path) -> bool:
        """Whether it may have any benchmark."""

    def uncovered(self, suite: Path) -> list[str]:
        """What looks like a benchmark and is never run, one sentence each."""

    def lightest(self, suite: Path, names: Sequence[str]) -> str:
        """Of these benchmarks, at least one, the one that costs least to try."""

    def digest(self, suite: Path) -> str:
        """A digest of what its benchmarks are written in, the same wherever the suite lies: with
        another one, a benchmark may do something else."""

    def laid_out(
        self, suite: Path, of: Configuration, shared: Sequence[str], folder: Path
    ) -> Suite:
        """What the sides run: this kind's program in `harness/inside`, with its settings. Files
        that a run may change are first copied into the scratch `folder`."""
