"""Suites of criterion: the benches of crates, which are compiled with each side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rlox_opt.harness.side_processes import Suite
from rlox_opt.project import bench_targets
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.bench_targets import MANIFEST
from rlox_opt.system.usage import UsageError


class Criterion:
    """The benches of all crates in a folder and below, or of one crate. A side consists of compiled
    programs (see `builders.criterion`), and its builder puts the suite among its sources."""

    name = "criterion"
    called = "a folder with a crate that has benches by criterion"
    found_by = "a [[bench]] with harness = false in a crate that depends on criterion"
    none = "no Cargo.toml there has a [[bench]] with harness = false whose source uses criterion"
    together = False

    def there(
        self, top: Path, root: PurePosixPath, listed: Sequence[str] | None
    ) -> list[PurePosixPath]:
        manifests = None
        if listed is not None:
            paths = [top / of for of in listed if PurePosixPath(of).name == MANIFEST]
            manifests = [of for of in paths if of.is_relative_to(top / root) and of.is_file()]
        return [root] if bench_targets.measured(top / root, manifests) else []

    def takes(self, top: Path, path: PurePosixPath) -> bool:
        return bool((top / path).exists() and bench_targets.measured(top / path))

    def suite(self, top: Path, root: PurePosixPath, path: PurePosixPath) -> Configuration:
        if not bench_targets.measured(top / path):
            raise UsageError(f"{path}: has no benchmark: {self.none}")
        home = path if (top / path).is_dir() else path.parent
        before = bench_targets.before_build(top / root)
        return Configuration(home / MANIFEST, path, root, kind=self.name, build_command=before)

    def benchmarks(self, suite: Path) -> list[str]:
        return bench_targets.benchmarks(bench_targets.measured(suite))

    def any_benchmark(self, suite: Path) -> bool:
        return bool(bench_targets.measured(suite))

    def uncovered(self, suite: Path) -> list[str]:
        crates = bench_targets.crates(suite) or bench_targets.measured(suite)
        return [each for crate in crates for each in crate.uncovered]

    def lightest(self, suite: Path, names: Sequence[str]) -> str:
        # What a trial costs is not known before the program runs, so the first program is taken.
        return f"{names[0].partition('::')[0]}::"

    def digest(self, suite: Path) -> str:
        return bench_targets.digest_of_benches(suite)

    def laid_out(
        self, suite: Path, of: Configuration, shared: Sequence[str], folder: Path
    ) -> Suite:
        # The process that starts the programs lacks some of these, as they are not for its Python.
        told = {"env": bench_targets.of_python()}
        return Suite(suite, (), "rlox_opt_criterion_side.py", told, fresh=True)
