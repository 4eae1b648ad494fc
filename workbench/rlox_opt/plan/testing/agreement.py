"""Tests whether twins agree: the pairs' property tests of chosen optimisations, in Rust and
Python."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.plan.features import cargo_of
from rlox_opt.project.project import Project
from rlox_opt.system.commands import (
    CannotTell,
    CompileError,
    Hear,
    compile_pairs,
    names_in,
    run,
    run_one,
)
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

WORDS = DIFFER, AGREE, SKIPPED, UNTESTED = "differ", "agree", "skipped", "untested"


@dataclass(frozen=True)
class Agreement:
    """The outcome of a test of twins: `passed` (None if it did not run), its seconds, and the end
    of its output if it failed. For a skipped test the output is the reason."""

    passed: bool | None
    seconds: float
    output: str = ""

    @property
    def word(self) -> str:
        """The outcome in a word: one of `WORDS`."""
        if self.passed is None:
            return SKIPPED if self.output else UNTESTED
        return AGREE if self.passed else DIFFER


def together(outcomes: Sequence[Agreement | None]) -> Agreement:
    """One outcome of several tests of the same twins, some of which may not exist. The twins differ
    if one test says so; otherwise they agree if one says that."""
    there = sorted(filter(None, outcomes), key=lambda outcome: WORDS.index(outcome.word))
    first = there[0].word if there else UNTESTED
    return Agreement(
        {DIFFER: False, AGREE: True}.get(first),
        sum(outcome.seconds for outcome in there),
        "\n".join(outcome.output for outcome in there if outcome.word == first),
    )


def rust(
    project: Project, ids: Iterable[str] | None, hear: Hear, profile: str = "test"
) -> dict[str, Agreement]:
    """The outcomes of all pairs in Rust, or of those in `ids` that have one, under a cargo profile.

    Raises:
        CannotTell: the tests do not compile.
        UsageError: there is no cargo.
    """
    crate = cargo_of(project).twins
    folder = project.root / "crates" / crate
    try:
        binary = compile_pairs(project.root, crate, profile, hear=hear)
    except CompileError as error:
        why = f"the tests of the pairs do not compile; repair that first\n{error}"
        raise CannotTell(why) from None
    names = names_in(binary)
    outcomes = {}
    for id_ in names if ids is None else ids:
        if id_ in names:
            done = run_one(binary, names[id_], folder, hear)
            outcomes[id_] = Agreement(done.status == 0, done.seconds, done.tail)
    return outcomes


def under(project: Project, profiles: Iterable[str], hear: Hear) -> Agreement:
    """The outcome for a pair of builds, which has no functions of its own: the tests of all pairs
    under each of cargo's profiles."""
    seconds = 0.0
    for profile in profiles:
        for id_, outcome in rust(project, None, hear, profile).items():
            seconds += outcome.seconds
            if not outcome.passed:
                return Agreement(False, seconds, f"{id_} under {profile}:\n{outcome.output}")
    return Agreement(True, seconds)


def python(project: Project, ids: Sequence[str], hear: Hear) -> dict[str, Agreement]:
    """The outcomes of `ids`. All of them must have a pair that pytest's tests know.

    Raises:
        CannotTell: pytest ended before the tests.
        UsageError: pytest or hypothesis is not installed.
    """
    if not ids:
        return {}
    tests = project.settings.twins.tests
    if untold := sorted({id_[0] for id_ in ids} - tests.keys()):
        raise UsageError(
            f'{", ".join(ids)}: no tests are named; write tests.{untold[0]} = "…" under '
            "[tool.rlox-opt.twins] of pyproject.toml"
        )
    for package in ("pytest", "hypothesis"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(f"{package}: is not installed; `make setup` installs it into .venv")
    return pytest_outcomes(ids, project.root, tests, hear)


def pytest_outcomes(
    ids: Sequence[str],
    root: Path,
    tests: Mapping[str, str],
    hear: Hear,
    limit_s: float = 3600.0,
) -> dict[str, Agreement]:
    """Run the Python property tests of `ids` in the checkout `root`, against its extension. `tests`
    are the files, by the first letter of an id. Raises CannotTell if pytest breaks, or takes longer
    than `limit_s`."""
    with scratch() as folder:
        report = folder / "report.xml"
        done = run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--maxfail=0"]
            + ["--junitxml", str(report), "-m", "slow or not slow"]
            + [f"{tests[id_[0]]}::test_the_twins_agree[{id_}]" for id_ in ids],
            root,
            {"PYTHONPATH": str(root)},
            hear,
            limit_s,
        )
        if done.status not in (0, 1):
            raise CannotTell(f"pytest could not run the tests of the pairs\n{done.tail}")
        cases = {case.get("name"): case for case in ET.parse(report).iter("testcase")}
    outcomes = {}
    for id_ in ids:
        case = cases.get(f"test_the_twins_agree[{id_}]")
        if case is None:  # pytest was stopped before
            continue
        told = {part.tag: part.get("message", "") for part in case}
        wrong = [told[tag] for tag in ("failure", "error") if tag in told]
        passed = False if wrong else None if "skipped" in told else True
        why = "\n".join(wrong) or told.get("skipped", "")
        outcomes[id_] = Agreement(passed, float(case.get("time", 0)), why)
    return outcomes


def stale(project: Project) -> bool:
    """Whether the installed twins are older than a Rust source, and so may be of other code."""
    extension, _ = project.installed.extension_of_twins()
    built = extension.stat().st_mtime
    return any(source.stat().st_mtime > built for source in (project.root / "crates").rglob("*.rs"))
