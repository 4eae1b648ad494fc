"""Suites of asv: a folder of benchmarks, and the asv.conf.json that names it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rlox_opt.harness.side_processes import Suite
from rlox_opt.project import asv_files, suite_source
from rlox_opt.project.artefacts import digest_of_files
from rlox_opt.project.asv_configuration import Configuration


class Asv:
    """asv's kind. Nothing is copied, since asv too runs benchmarks in place."""

    name = "asv"
    called = "an asv.conf.json, a folder of asv benchmarks"
    found_by = "an asv.conf.json"
    none = "no function there begins with time_, mem_, peakmem_ or track_"
    together = True

    def there(
        self, top: Path, root: PurePosixPath, listed: Sequence[str] | None
    ) -> list[PurePosixPath]:
        return asv_files.below(top, root, listed)

    def takes(self, top: Path, path: PurePosixPath) -> bool:
        return suite_source.any_benchmark(top / path)

    def suite(self, top: Path, root: PurePosixPath, path: PurePosixPath) -> Configuration:
        return asv_files.chosen(top, root, f"{path}")

    def benchmarks(self, suite: Path) -> list[str]:
        return suite_source.benchmarks(suite)

    def any_benchmark(self, suite: Path) -> bool:
        return suite_source.any_benchmark(suite)

    def uncovered(self, suite: Path) -> list[str]:
        return [*suite_source.uncovered(suite), *suite_source.of_plug_ins(suite)]

    def lightest(self, suite: Path, names: Sequence[str]) -> str:
        timed = [name for name in names if name.rpartition(".")[2].startswith("time_")] or names
        return suite_source.lightest(suite, timed)

    def digest(self, suite: Path) -> str:
        return digest_of_files(suite.rglob("*"), suite)

    def laid_out(
        self, suite: Path, of: Configuration, shared: Sequence[str], folder: Path
    ) -> Suite:
        return Suite(suite, tuple(shared))
