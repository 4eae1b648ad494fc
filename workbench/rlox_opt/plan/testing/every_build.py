"""The Rust tests in one build after the other, and whether their golden runs are the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.plan.features import Build
from rlox_opt.system.commands import Hear, cargo, run

_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed", re.MULTILINE)
_CLOSE = "close"  # within a tolerance of the baselines, if an optimisation rounds differently
_GOLDEN = re.compile(rf"^golden (\S+) ([0-9a-f]{{16}}|{_CLOSE})$", re.MULTILINE)


@dataclass(frozen=True)
class Finished:
    """The result of one build: tests passed and failed, and digests of its golden runs by name."""

    name: str
    features: tuple[str, ...]
    green: bool
    passed: int
    failed: int
    seconds: float
    golden: Mapping[str, str]
    output: str  # the end of it, if a test failed

    @property
    def summary(self) -> str:
        """The result in a few words."""
        if self.green:
            return f"{self.passed} passed"
        return f"{self.failed} failed, {self.passed} passed" if self.failed else "did not finish"


def tested(root: Path, build: Build, hear: Hear) -> Finished:
    """Run every Rust test of the workspace in this build."""
    name, features = build
    done = run(
        [cargo(), "test", "--workspace", "--locked", "--no-fail-fast"]
        + (["--features", ",".join(features)] if features else [])
        + ["--", "--show-output"],
        root,
        hear=hear,
    )
    counts = [(int(passed), int(failed)) for passed, failed in _RESULT.findall(done.output)]
    passed, failed = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    green = done.status == 0 and passed > 0
    return Finished(
        name,
        features,
        green,
        passed,
        failed,
        done.seconds,
        dict(_GOLDEN.findall(done.output)),
        "" if green else done.tail,
    )


def differences(builds: Iterable[Finished]) -> list[str]:
    """The golden runs that differ among the builds that passed, with the builds that differ.

    The result of most builds is taken as right, and a build that lacks a run differs. A run that is
    compared within a tolerance has no digest.
    """
    green = [build for build in builds if build.green]
    told = []
    for name in sorted({name for build in green for name in build.golden}):
        found_by = {build.name: build.golden.get(name, "missing") for build in green}
        exact = {build: digest for build, digest in found_by.items() if digest != _CLOSE}
        usual = Counter(exact.values()).most_common(1)
        odd = [build for build, digest in exact.items() if digest != usual[0][0]]
        if odd:
            told.append(f"golden run {name}: {', '.join(odd)} differ from the other builds")
    return told + [f"golden runs: {b.name} printed none" for b in green if not b.golden]
