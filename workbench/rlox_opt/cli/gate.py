"""`rlox-opt gate`: the verdicts of `diff` as an exit code, for hooks and CI."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator
from typing import Any

from rlox_opt.cli.diff import add_arguments, compare, tell
from rlox_opt.harness.restarts import ContestError
from rlox_opt.harness.sequential import tally
from rlox_opt.project.builders.criterion import own_benches
from rlox_opt.project.builds import NotBuiltError
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import ComparedBuilds
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED
from rlox_opt.system.files import NotReadError
from rlox_opt.system.output import number_of, say
from rlox_opt.system.patterns import beginning
from rlox_opt.system.usage import UsageError

_EXAMPLES = """\
examples:
  rlox-opt gate origin/main...HEAD        what this branch changed since it left origin/main
  rlox-opt gate v1.2 HEAD --threshold 3 --bench 'data_plane' \\
    --markdown >> "$GITHUB_STEP_SUMMARY"

As a hook before each push, in .git/hooks/pre-push:
  #!/bin/sh
  exec rlox-opt gate origin/HEAD...HEAD --threshold 3 --budget 120 --hook

Name the base as A...B, as git does: that is the commit at which B branched off from A. Compared
with A itself, a branch that is behind would be blamed for what A has gained since.

The gate fails where the whole interval of a benchmark lies above 1 by more than --threshold, and
the benchmark stands out among all of the run. It does not fail for a regression that the change
itself acknowledges, up to the ratio that is written there (see `rlox-opt regressions --help`).
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "gate",
        help="fail where a commit made a benchmark slower",
        description="Compare two commits as `diff` does, and turn the verdicts into an exit code.",
        epilog=_EXAMPLES
        + exits.told(
            good="no regression",
            difference="a benchmark is slower, takes more memory, or tracks a larger value",
            cannot_tell="a benchmark is undecided, fails or cannot be read, or a commit does not "
            "build",
            interrupted="what is known is printed; 1 where that holds a regression",
        ),
    )
    add_arguments(parser, project)
    parser.add_argument(
        "--hook",
        action="store_true",
        help="for git hooks: where the exit code would be 2, warn and exit with 0",
    )
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare and judge; returns the exit code."""
    try:
        code, why = _judged(arguments)
    except (ContestError, NotBuiltError, NotReadError, UsageError) as problem:
        if not arguments.hook:
            raise
        say(f"rlox-opt gate: {problem}", stderr=True)
        code, why = CANNOT_TELL, f"{problem}"
    if not arguments.hook or code != CANNOT_TELL:
        return code
    told = f"rlox-opt gate could not tell, which --hook lets pass: {why}"
    if "GITHUB_ACTIONS" in os.environ:  # one line, in which a per cent sign begins a code
        told = f"::warning::{told}".replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    else:
        told = f"warning: {told}"
    say(told, stderr=True)
    return GOOD


def _judged(arguments: argparse.Namespace) -> tuple[int, str]:
    compared = compare(arguments)
    code, why = decision(compared, _spared(compared, arguments))
    tell(compared, arguments, {"exit_code": code, "reason": why})
    say(f"rlox-opt gate: {why}", stderr=True)
    return code, why


def decision(compared: ComparedBuilds, spared: Collection[str] = ()) -> tuple[int, str]:
    """The exit code, and why. Parts of the suite that are `spared` need not be readable in base."""
    counts = tally(compared.verdicts())
    meant = [name for name in compared.slower() if compared.excused(name)]
    unmeant = counts["slower"] - len(meant)
    own = [own_benches(of) for of in (compared.base, compared.head)]
    if unmeant and own[0] == own[1]:
        larger = len(compared.meant) - len(meant)
        beyond = f", {larger} of them by more than is acknowledged" if larger else ""
        return DIFFERENCE, f"regression: {unmeant} slower or larger{beyond}"
    if not compared.complete:
        return INTERRUPTED, "interrupted"
    if unmeant:
        sides = " and ".join(side for side, of in zip(("base", "head"), own, strict=True) if of)
        return CANNOT_TELL, (
            f"cannot tell: {unmeant} slower or larger, but the suite does not compile in {sides}, "
            "where benchmarks may do something else; --suite REV takes those of a commit that both "
            "can compile"
        )
    if compared.needless:
        return GOOD, "no regression: both packages are byte for byte the same"
    failed = len(compared.failures()) + len(_unread(compared, spared))
    if failed:
        return (
            CANNOT_TELL,
            f"cannot tell: {number_of(failed, 'benchmark')} could not be measured, or not be read",
        )
    if open_ := counts["undecided"] + len(compared.unmeasured()):
        return CANNOT_TELL, f"cannot tell: {open_} undecided; {'; '.join(_remedies(compared))}"
    if not any(counts.values()):
        return CANNOT_TELL, "cannot tell: nothing was measured"
    return GOOD, "no regression" + (f" but {len(meant)} acknowledged" if meant else "")


def _unread(compared: ComparedBuilds, spared: Collection[str]) -> set[str]:
    """The parts of the suite that could not be read, so that nothing is known of their benchmarks.
    What only head cannot read, head may have broken."""
    base, head = (compared.broken.get(side, {}) for side in ("base", "head"))
    lost = {part for part, why in base.items() if not why.startswith("skipped:")}
    return (lost - {*spared}) | (head.keys() - base.keys())


def _spared(compared: ComparedBuilds, arguments: argparse.Namespace) -> set[str]:
    """The parts of the suite that base cannot read and need not: those that --bench leaves out, and
    those that head can read and base's commit does not have yet."""
    base, head = (compared.broken.get(side, {}) for side in ("base", "head"))
    commits, commit = arguments.project.commits, compared.base.revision.commit
    asked = beginning(arguments.bench)
    return {
        part
        for part in base
        if not (_names(part).startswith(asked) or asked.startswith(_names(part)))
        or (part not in head and not commits.has(commit, *_files(part)))
    }


def _names(part: str) -> str:
    """How the names of a part's benchmarks begin."""
    path = part.partition("::")[0]
    if "/" in path or path.endswith(".py") or "." not in path:  # a file of tests, or a bench
        return f"{part}::"
    return f"{path.partition('.')[2]}."  # a module, after the suite's folder


def _files(part: str) -> Iterator[str]:
    """Where a part may lie: a file of tests, a module, that of a class, or a bench in Rust."""
    path = part.partition("::")[0]
    if path.endswith(".py"):
        yield path
        return
    module, name = path.replace(".", "/"), path.rpartition("/")[2]
    yield from (f"{module}.py", f"{module}/__init__.py", f"{module.rpartition('/')[0]}.py")
    yield from (f"benches/{name}.rs", f"benches/{name}/main.rs")


def _remedies(compared: ComparedBuilds) -> Iterator[str]:
    """What would decide those that are undecided."""
    more = compared.more()
    if more.settled:
        yield f"about {more.seconds:.0f} s more of --budget would settle {more.settled}"
    if more.noisy:
        yield (
            f"{more.noisy} scatter too much for a verdict within {compared.within()}, but may get "
            "one by a larger --threshold"
        )
